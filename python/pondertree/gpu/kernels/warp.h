// A warp holds a node: lane l has its places (edge indices) l, l + LANES, ... Compiled as C, the one lane has all places.

#include "cuda_compat.h"

// A loop over the places of a lane, unrolled so that per-place arrays stay in registers.
#define EACH(g) UNROLLED for (int g = 0; g < GROUPS; ++g)
// The number of lanes that can have places.
#define WIDTH (GROUPS > 1 || PLACES > 16 ? LANES : PLACES > 8 ? (LANES < 16 ? LANES : 16) : (LANES < 8 ? LANES : 8))
#define WITH_PLACES (WIDTH == 32 ? 0xffffffffu : (1u << WIDTH) - 1u)

// Butterfly reductions over the first WIDTH lanes, which all receive the result; in other lanes it is undefined.
#define REDUCE(name, type, lanes, better)                                                                                      \
    DEVICE type name(type x) {                                                                                                 \
        UNROLLED for (int step = (lanes) / 2; step > 0; step /= 2) {                                                           \
            type other = SHUFFLE_XOR(x, step);                                                                                 \
            x = (better) ? other : x;                                                                                          \
        }                                                                                                                      \
        return x;                                                                                                              \
    }
REDUCE(lowest_of, double, WIDTH, other < x)
REDUCE(highest_of, double, WIDTH, other > x)
REDUCE(least_of, int, WIDTH, other < x)
REDUCE(most_of, int, WIDTH, other > x)
// Over all lanes.
REDUCE(lowest_of_all, double, LANES, other < x)
REDUCE(highest_of_all, double, LANES, other > x)

DEVICE int sum_of(int x) {
    UNROLLED for (int step = WIDTH / 2; step > 0; step /= 2) x += SHUFFLE_XOR(x, step);
    return x;
}

// Sums places `from` to `to` in order: the engine adds in this order, and f64 addition is not associative.
DEVICE double ordered_sum(const double *x, int from, int to) {
    double sum = 0.0;
    EACH(g) {
        int last = to - g * LANES < LANES ? to - g * LANES : LANES;
        for (int l = from > g * LANES ? from - g * LANES : 0; l < last; ++l) sum += SHUFFLE(x[g], l);
    }
    return sum;
}
