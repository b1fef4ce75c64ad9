// The leaf policy for large action spaces: the k highest logits of each row, lowest action first, and log-sum-exp of all. One block
// per row; each thread has a range of consecutive actions.
//
// Compile-time definitions: ACTIONS; THREADS per block on a GPU.

#include "outputs.h"

#ifndef __CUDACC_RTC__
#define THREADS 1
#endif
#define WARPS (THREADS / LANES)
// Actions per thread.
#define ACTIONS_PER_THREAD ((ACTIONS + THREADS - 1) / THREADS)
#define FOR_EACH_OWN(i) UNROLLED for (int i = 0; i < ACTIONS_PER_THREAD; ++i)
// NaN is ordered above all numbers, so that it is among the top k and the engine refuses it.
#define NOT_A_NUMBER 0xffffffffu

// A model's outputs, and the responses: reward, value, discount if there is one; log-sum-exp as the sum of two float32 numbers;
// `k` logits, and their actions.
typedef struct {
    const void *reward;
    const void *value;
    const void *discount;
    const void *logits;
    float *responses;
    int reward_type, value_type, discount_type, logits_type;
    int k, rows;
} ModelOutput;

// Unsigned keys in the order of the numbers; of bfloat16, the lower half is 0.
#define ALL_BITS(type) ((type) == BFLOAT16 ? 0xffff0000u : 0xffffffffu)

DEVICE unsigned key_of(float number, unsigned bits) {
    union {
        float number;
        unsigned bits;
    } read = {number};
    if (number != number) return NOT_A_NUMBER & bits;
    return (read.bits & 0x80000000u ? ~read.bits : read.bits | 0x80000000u) & bits;
}

DEVICE float number_of(unsigned key, unsigned bits) {
    union {
        unsigned bits;
        float number;
    } read = {(key & 0x80000000u ? key ^ 0x80000000u : ~key) & bits};
    return read.number;
}

// Reductions over all threads of a block, which all receive the result; consecutive calls need different `scratch`.
#define REDUCE(name, type, combined)                                                                                           \
    DEVICE type name(type x, type *scratch, int thread) {                                                                      \
        UNROLLED for (int step = LANES / 2; step > 0; step /= 2) {                                                             \
            type other = SHUFFLE_XOR(x, step);                                                                                 \
            x = (combined);                                                                                                    \
        }                                                                                                                      \
        if (thread % LANES == 0) scratch[thread / LANES] = x;                                                                  \
        SYNC_BLOCK();                                                                                                          \
        x = scratch[0];                                                                                                        \
        UNROLLED for (int warp = 1; warp < WARPS; ++warp) {                                                                    \
            type other = scratch[warp];                                                                                        \
            x = (combined);                                                                                                    \
        }                                                                                                                      \
        return x;                                                                                                              \
    }
REDUCE(block_sum_i32, int, x + other)
REDUCE(block_sum_f64, double, x + other)
REDUCE(block_max_u32, unsigned, other > x ? other : x)

// Exclusive prefix sum over the threads of a block.
DEVICE unsigned block_prefix_sum(unsigned own, unsigned *scratch, int thread) {
    unsigned x = own;
    int lane = thread % LANES, warp = thread / LANES;
    UNROLLED for (int step = 1; step < LANES; step *= 2) {
        unsigned other = SHUFFLE_UP(x, step);
        if (lane >= step) x += other;
    }
    if (lane == LANES - 1) scratch[warp] = x;
    SYNC_BLOCK();
    for (int before = 0; before < warp; ++before) x += scratch[before];
    return x - own;
}

DEVICE void select(const ModelOutput *s, int64 row, int thread) {
    SHARED int counts[2][WARPS];
    SHARED unsigned highest[WARPS], places[WARPS];
    SHARED double exponentials[WARPS];
    unsigned keys[ACTIONS_PER_THREAD], max_key = 0, bits = ALL_BITS(s->logits_type);
    int first = thread * ACTIONS_PER_THREAD, k = s->k;
    FOR_EACH_OWN(i) {
        int there = first + i < ACTIONS;
        // Key 0 belongs to no number.
        keys[i] = there ? key_of((float)number(s->logits, row * ACTIONS + first + i, s->logits_type), bits) : 0;
        max_key = keys[i] > max_key ? keys[i] : max_key;
    }
    double greatest = number_of(block_max_u32(max_key, highest, thread), bits), sum = 0.0;
    FOR_EACH_OWN(i) {
        if (keys[i]) sum += exp((double)number_of(keys[i], bits) - greatest);
    }
    sum = block_sum_f64(sum, exponentials, thread);
    // Radix select: bit by bit, the highest key that at least `k` keys reach.
    unsigned floor = 0;
    for (int bit = 31, count = 0; bit >= 0 && (bits >> bit & 1u) && count != k; --bit) {
        unsigned candidate = floor | 1u << bit;
        count = 0;
        FOR_EACH_OWN(i) count += keys[i] >= candidate;
        count = block_sum_i32(count, counts[bit & 1], thread);
        if (count >= k) floor = candidate;
    }
    // Keys above it are taken, and of equal keys the first ones, up to `k` in all.
    unsigned own = 0;
    FOR_EACH_OWN(i) own += (keys[i] > floor) * 65536u + (keys[i] == floor);
    unsigned before = block_prefix_sum(own, places, thread);
    int equal_taken = k - block_sum_i32((int)(own / 65536u), counts[0], thread);
    int above = (int)(before / 65536u), equal = (int)(before % 65536u);
    int width = 4 + (s->discount != 0) + 2 * k;
    float *response = s->responses + row * width, *logits = response + width - 2 * k, *actions = logits + k;
    FOR_EACH_OWN(i) {
        int is_above = keys[i] > floor, is_equal = keys[i] == floor;
        if (is_above || (is_equal && equal < equal_taken)) {
            int place = above + (equal < equal_taken ? equal : equal_taken);
            logits[place] = number_of(keys[i], bits);
            actions[place] = (float)(first + i);
        }
        above += is_above;
        equal += is_equal;
    }
    if (thread == 0) {
        response[0] = (float)number(s->reward, row, s->reward_type);
        response[1] = (float)number(s->value, row, s->value_type);
        if (s->discount) response[2] = (float)number(s->discount, row, s->discount_type);
        double logarithm = greatest + log(sum);
        logits[-2] = (float)logarithm;
        logits[-1] = (float)(logarithm - (double)logits[-2]);
    }
}

#ifdef __CUDACC_RTC__
extern "C" __global__ void __launch_bounds__(THREADS) top_k(const __grid_constant__ ModelOutput s) {
    select(&s, (int64)blockIdx.x, (int)threadIdx.x);
}
#else
void top_k(const ModelOutput *s) {
    for (int64 row = 0; row < s->rows; ++row) select(s, row, 0);
}
#endif
