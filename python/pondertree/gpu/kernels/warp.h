// One warp per node: lane l has the places (edge indices) l, l + LANES, ... Compiled as C, the one lane has all places.

#include "cuda_compat.h"

// A loop over the places of a lane, unrolled so that per-place arrays stay in registers.
#define FOR_EACH_GROUP(g) UNROLLED for (int g = 0; g < GROUPS; ++g)
// The number of lanes that can have places.
#define ACTIVE_LANES (GROUPS > 1 || PLACES > 16 ? LANES : PLACES > 8 ? (LANES < 16 ? LANES : 16) : (LANES < 8 ? LANES : 8))
#define ACTIVE_MASK (ACTIVE_LANES == 32 ? 0xffffffffu : (1u << ACTIVE_LANES) - 1u)

// Butterfly reductions over the first ACTIVE_LANES lanes, which all receive the result; in other lanes it is undefined.
#define REDUCE(name, type, lanes, better)                                                                                      \
    DEVICE type name(type x) {                                                                                                 \
        UNROLLED for (int step = (lanes) / 2; step > 0; step /= 2) {                                                           \
            type other = SHUFFLE_XOR(x, step);                                                                                 \
            x = (better) ? other : x;                                                                                          \
        }                                                                                                                      \
        return x;                                                                                                              \
    }
REDUCE(warp_min_f64, double, ACTIVE_LANES, other < x)
REDUCE(warp_max_f64, double, ACTIVE_LANES, other > x)
REDUCE(warp_min_i32, int, ACTIVE_LANES, other < x)
REDUCE(warp_max_i32, int, ACTIVE_LANES, other > x)
// Over all lanes.
REDUCE(full_warp_min_f64, double, LANES, other < x)
REDUCE(full_warp_max_f64, double, LANES, other > x)

DEVICE int warp_sum_i32(int x) {
    UNROLLED for (int step = ACTIVE_LANES / 2; step > 0; step /= 2) x += SHUFFLE_XOR(x, step);
    return x;
}

// Sums places `from` to `to` in order: the engine adds in this order, and f64 addition is not associative.
DEVICE double ordered_sum(const double *x, int from, int to) {
    double sum = 0.0;
    FOR_EACH_GROUP(g) {
        int last = to - g * LANES < LANES ? to - g * LANES : LANES;
        for (int l = from > g * LANES ? from - g * LANES : 0; l < last; ++l) sum += SHUFFLE(x[g], l);
    }
    return sum;
}
