// The likeliest actions of a policy, lowest action first, and the logarithm of the sum of all exponentials: what the engine needs to
// know of a leaf in a wide action space. A block has a row, and a thread some actions that follow one another.
//
// Defined by who compiles it: ACTIONS, how many there are; THREADS, how many a block of a GPU has.

#include "numbers.h"

#ifndef __CUDACC_RTC__
#define THREADS 1
#endif
#define WARPS (THREADS / LANES)
// Actions of a thread.
#define OWN ((ACTIONS + THREADS - 1) / THREADS)
#define EACH_OWN(i) UNROLLED for (int i = 0; i < OWN; ++i)
// A logit that is NaN counts as the highest, so that the engine meets it, and refuses.
#define NOT_A_NUMBER 0xffffffffu

// What a model said of each row, and where the answers go: reward, value, discount if there is one; then the logarithm, in two
// parts, `most` logits, and their actions.
typedef struct {
    const void *reward;
    const void *value;
    const void *discount;
    const void *logits;
    float *answers;
    int reward_type, value_type, discount_type, logits_type;
    int most, rows;
} Said;

// Bits that are in the order of the numbers. Of bfloat16, the upper half tells all.
#define ALL_BITS(type) ((type) == BFLOAT16 ? 0xffff0000u : 0xffffffffu)

HERE unsigned key_of(float number, unsigned bits) {
    union {
        float number;
        unsigned bits;
    } read = {number};
    if (number != number) return NOT_A_NUMBER & bits;
    return (read.bits & 0x80000000u ? ~read.bits : read.bits | 0x80000000u) & bits;
}

HERE float number_of(unsigned key, unsigned bits) {
    union {
        unsigned bits;
        float number;
    } read = {(key & 0x80000000u ? key ^ 0x80000000u : ~key) & bits};
    return read.number;
}

// Over all threads of a block, each of which has the result; `room` must not be that of the call before.
#define REDUCE(name, type, combined)                                                                                           \
    HERE type name(type x, type *room, int thread) {                                                                           \
        UNROLLED for (int step = LANES / 2; step > 0; step /= 2) {                                                             \
            type other = SWAP(x, step);                                                                                        \
            x = (combined);                                                                                                    \
        }                                                                                                                      \
        if (thread % LANES == 0) room[thread / LANES] = x;                                                                     \
        MEET_ALL();                                                                                                            \
        x = room[0];                                                                                                           \
        UNROLLED for (int warp = 1; warp < WARPS; ++warp) {                                                                    \
            type other = room[warp];                                                                                           \
            x = (combined);                                                                                                    \
        }                                                                                                                      \
        return x;                                                                                                              \
    }
REDUCE(sum_of, int, x + other)
REDUCE(exact_sum_of, double, x + other)
REDUCE(highest_of, unsigned, other > x ? other : x)

// The sum of what threads before this one have.
HERE unsigned sum_before(unsigned own, unsigned *room, int thread) {
    unsigned x = own;
    int lane = thread % LANES, warp = thread / LANES;
    UNROLLED for (int step = 1; step < LANES; step *= 2) {
        unsigned other = FROM_BELOW(x, step);
        if (lane >= step) x += other;
    }
    if (lane == LANES - 1) room[warp] = x;
    MEET_ALL();
    for (int before = 0; before < warp; ++before) x += room[before];
    return x - own;
}

HERE void pick(const Said *s, word row, int thread) {
    SHARED int counts[2][WARPS];
    SHARED unsigned highest[WARPS], places[WARPS];
    SHARED double exponentials[WARPS];
    unsigned keys[OWN], most_key = 0, bits = ALL_BITS(s->logits_type);
    int first = thread * OWN, most = s->most;
    EACH_OWN(i) {
        int there = first + i < ACTIONS;
        // No number has this key.
        keys[i] = there ? key_of((float)number(s->logits, row * ACTIONS + first + i, s->logits_type), bits) : 0;
        most_key = keys[i] > most_key ? keys[i] : most_key;
    }
    double greatest = number_of(highest_of(most_key, highest, thread), bits), sum = 0.0;
    EACH_OWN(i) {
        if (keys[i]) sum += exp((double)number_of(keys[i], bits) - greatest);
    }
    sum = exact_sum_of(sum, exponentials, thread);
    // Bit by bit, the highest key that at least `most` are not below.
    unsigned floor = 0;
    for (int bit = 31, count = 0; bit >= 0 && (bits >> bit & 1u) && count != most; --bit) {
        unsigned candidate = floor | 1u << bit;
        count = 0;
        EACH_OWN(i) count += keys[i] >= candidate;
        count = sum_of(count, counts[bit & 1], thread);
        if (count >= most) floor = candidate;
    }
    // Those above it, and of those that are level the first, as many as there is room for.
    unsigned own = 0;
    EACH_OWN(i) own += (keys[i] > floor) * 65536u + (keys[i] == floor);
    unsigned before = sum_before(own, places, thread);
    int level_room = most - sum_of((int)(own / 65536u), counts[0], thread);
    int above = (int)(before / 65536u), level = (int)(before % 65536u);
    int width = 4 + (s->discount != 0) + 2 * most;
    float *answer = s->answers + row * width, *logits = answer + width - 2 * most, *actions = logits + most;
    EACH_OWN(i) {
        int is_above = keys[i] > floor, is_level = keys[i] == floor;
        if (is_above || (is_level && level < level_room)) {
            int place = above + (level < level_room ? level : level_room);
            logits[place] = number_of(keys[i], bits);
            actions[place] = (float)(first + i);
        }
        above += is_above;
        level += is_level;
    }
    if (thread == 0) {
        answer[0] = (float)number(s->reward, row, s->reward_type);
        answer[1] = (float)number(s->value, row, s->value_type);
        if (s->discount) answer[2] = (float)number(s->discount, row, s->discount_type);
        double logarithm = greatest + log(sum);
        logits[-2] = (float)logarithm;
        logits[-1] = (float)(logarithm - (double)logits[-2]);
    }
}

#ifdef __CUDACC_RTC__
extern "C" __global__ void __launch_bounds__(THREADS) likeliest(const __grid_constant__ Said s) {
    pick(&s, (word)blockIdx.x, (int)threadIdx.x);
}
#else
void likeliest(const Said *s) {
    for (word row = 0; row < s->rows; ++row) pick(s, row, 0);
}
#endif
