// A warp and its lanes. Lane l of a warp has the places l, l + LANES, ... of a node. Compiled for a processor (tests do), a "warp" is
// one lane that has all places.

#include "here.h"

// Unrolled, so that what a lane has of each group stays in registers.
#define EACH(g) UNROLLED for (int g = 0; g < GROUPS; ++g)
// The lanes that can have places.
#define WIDTH (GROUPS > 1 || PLACES > 16 ? LANES : PLACES > 8 ? (LANES < 16 ? LANES : 16) : (LANES < 8 ? LANES : 8))
#define WITH_PLACES (WIDTH == 32 ? 0xffffffffu : (1u << WIDTH) - 1u)

// Reductions over the lanes that have places: WIDTH of them, each of which has the result. In the others it means nothing.
#define REDUCE(name, type, lanes, better)                                                                                      \
    HERE type name(type x) {                                                                                                   \
        UNROLLED for (int step = (lanes) / 2; step > 0; step /= 2) {                                                           \
            type other = SWAP(x, step);                                                                                        \
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

HERE int sum_of(int x) {
    UNROLLED for (int step = WIDTH / 2; step > 0; step /= 2) x += SWAP(x, step);
    return x;
}

// The sum of the numbers of places `from` to `to`, in their order: f64 sums depend on it.
HERE double ordered_sum(const double *x, int from, int to) {
    double sum = 0.0;
    EACH(g) {
        int last = to - g * LANES < LANES ? to - g * LANES : LANES;
        for (int l = from > g * LANES ? from - g * LANES : 0; l < last; ++l) sum += SHUFFLE(x[g], l);
    }
    return sum;
}
