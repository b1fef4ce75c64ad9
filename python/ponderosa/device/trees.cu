// Trees that grow where their network or learned model computes: the next question of every tree in one launch.
//
// This is the hot part of the engine for such trees, and nothing else: the backup of the last answer (`backup.rs`, `latent.rs`) and
// the way down to the next leaf (`select.rs`, `score/`, `halving.rs`), with the rules of Connect 4 where that is the game
// (`games/connect_four.rs`). Numbers are added in the engine's order and in its precision, and ties fall as there, so that both grow
// the same trees. What the roots are, the engine says; what was found, it is told.
//
// A warp has a tree. Lane l of it has the places l, l + LANES, ... of a node: its edges in the order in which they were opened,
// those never tried behind. Compiled for a processor (tests do), a "warp" is one lane that has all places.
//
// Defined by who compiles it: PLACES, how many actions there are; GROUPS, how many places a lane has; GUMBEL, 1 or 0; CONNECT_FOUR,
// 1, or 0 for a learned model; PATIENCE, how many simulations without a question a step has at most; WARPS, how many a block of a GPU
// has.

#ifdef __CUDACC_RTC__
#define LANES 32
#define HERE static __device__ __forceinline__
#define SHUFFLE(x, lane) __shfl_sync(0xffffffffu, (x), (lane))
#define SWAP(x, step) __shfl_xor_sync(0xffffffffu, (x), (step))
#define BALLOT(bit) __ballot_sync(0xffffffffu, (bit))
#define COUNT_BITS(bits) __popc(bits)
#define MEET() __syncwarp()
#define UNROLLED _Pragma("unroll")
#define INFINITE __longlong_as_double(0x7ff0000000000000LL)
#else
#include <math.h>
#define LANES 1
#define HERE static
#define SHUFFLE(x, lane) (x)
#define SWAP(x, step) (x)
#define BALLOT(bit) ((bit) ? 1u : 0u)
#define COUNT_BITS(bits) __builtin_popcount(bits)
#define MEET()
#define UNROLLED
#define INFINITE HUGE_VAL
#endif

typedef long long word;
typedef unsigned long long bits64;

// Unrolled, so that what a lane has of each group stays in registers.
#define EACH(g) UNROLLED for (int g = 0; g < GROUPS; ++g)
// The lanes that can have places.
#define WIDTH (GROUPS > 1 || PLACES > 16 ? LANES : PLACES > 8 ? (LANES < 16 ? LANES : 16) : (LANES < 8 ? LANES : 8))
#define WITH_PLACES (WIDTH == 32 ? 0xffffffffu : (1u << WIDTH) - 1u)
#define LEAST_SPAN 1e-8
#define LEAST_PRIOR 1.17549435082228750797e-38
#define LEAST_SCORE -1e9
#define LARGEST 1e12
#define BY_NODE 0
#define BY_TREE 1
#define BFLOAT16 1

// What all trees share.
typedef struct {
    int nodes, actions, players;
    int normalize, rescale, mixed, has_discount;
    int fpu_parent, reward_type, value_type, logits_type;
    // Of what a network sees: the pattern of a 1, how many bits a number has, and how far apart planes, rows and columns are.
    int discount_type, one, bits, plane_step;
    int row_step, column_step, rows;
    double discount, value_scale, maxvisit_init, fpu;
} Rules;

// A node's whole numbers.
typedef struct {
    int to_play, count, opened, unused;
} Header;

// All arrays; those of edges are [trees, nodes, actions], those of nodes [trees, nodes].
typedef struct {
    Rules rules;
    // Roots, as the engine gave them: [trees, ...].
    const int *root_count;
    const int *root_to_play;
    const short *root_actions;
    const float *root_priors;
    const double *root_raw;
    const bits64 *keys;
    const bits64 *begun;
    const bits64 *root_boards;
    const word *slots;
    const double *draws;
    const int *considered;
    const double *weights;
    // The tree of each row: those that want more simulations come first.
    const int *order;
    // What a network or a model says of each row; numbers of the types above.
    const void *reward;
    const void *value;
    const void *own_discount;
    const void *logits;
    // The trees.
    Header *headers;
    double *raw;
    double *rewards;
    double *discounts;
    double *sums;
    int *visits;
    float *priors;
    short *actions;
    short *children;
    double *bounds;
    int *path;
    int *depth;
    // Simulations done, -1 before the root is planted; nodes made beside the root; whether a question was asked, and how many were.
    int *done;
    int *made;
    int *asked;
    int *rows;
    int *unsound;
    // The stones of the player to move and of the other, of each node.
    bits64 *boards;
    // What a model is asked next, row by row.
    word *parents;
    word *chosen;
    word *targets;
    // What a network sees next, row by row.
    void *observations;
} Trees;

// A number of a network, which may have computed in bfloat16: the upper half of a float32.
HERE double number(const void *numbers, word at, int type) {
    union {
        unsigned bits;
        float number;
    } read;
    if (type != BFLOAT16) return (double)((const float *)numbers)[at];
    read.bits = (unsigned)((const unsigned short *)numbers)[at] << 16;
    return (double)read.number;
}

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

// `random.rs`.
HERE bits64 mix(bits64 z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}
HERE bits64 fold(bits64 key, bits64 word_) { return mix(key ^ mix(word_ + 0x9E3779B97F4A7C15ULL)); }
HERE int below(bits64 *state, int n) {
    *state += 0x9E3779B97F4A7C15ULL;
    return (int)(((mix(*state) >> 32) * (bits64)n) >> 32);
}

// A node as its warp has it in hand.
typedef struct {
    Header header;
    double raw;
    double sum[GROUPS];
    int n[GROUPS];
    float prior[GROUPS];
    int action[GROUPS];
    int child[GROUPS];
} Node;

// Everything is asked of memory at once: what does not count is told apart afterwards.
HERE Node load(const Trees *t, word node, int lane) {
    Node it;
    int actions = t->rules.actions;
    word first = node * actions;
    it.header = t->headers[node];
    it.raw = t->raw[node];
    EACH(g) {
        int place = g * LANES + lane, inside = place < actions;
        it.sum[g] = inside ? t->sums[first + place] : 0.0;
        it.n[g] = inside ? t->visits[first + place] : 0;
        it.prior[g] = inside ? t->priors[first + place] : 0.0f;
        it.action[g] = inside ? t->actions[first + place] : 0;
        it.child[g] = inside ? t->children[first + place] : 0;
    }
    EACH(g) {
        int place = g * LANES + lane;
        if (place >= it.header.opened) {
            it.sum[g] = 0.0;
            it.n[g] = 0;
        }
        if (place >= it.header.count) {
            it.prior[g] = 0.0f;
            it.action[g] = 32767;
        }
    }
    return it;
}

// What the lane of a place has.
#define AT_PLACE(name, type)                                                                                                   \
    HERE type name(const type *numbers, int place) {                                                                           \
        type found = 0;                                                                                                        \
        EACH(g) {                                                                                                              \
            type one = SHUFFLE(numbers[g], place % LANES);                                                                     \
            if (place / LANES == g) found = one;                                                                               \
        }                                                                                                                      \
        return found;                                                                                                          \
    }
AT_PLACE(at_place, int)
AT_PLACE(prior_at, float)

// The place of bit number `skip` among those of all groups, in the order of places.
HERE int nth_place(const unsigned *bits, int skip) {
    int found = 0;
    EACH(g) {
        int here = COUNT_BITS(bits[g]);
        if (skip >= 0 && skip < here) {
            unsigned left = bits[g];
            for (int i = 0; i < skip; ++i) left &= left - 1;
            found = g * LANES + COUNT_BITS((left & (0u - left)) - 1u);
        }
        skip -= here;
    }
    return found;
}

#if !GUMBEL
// `score/muzero.rs` and `score/puct.rs` on `score/lanes.rs`: the highest score, and among equals one by chance.
HERE int choose(const Trees *t, word tree, const Node *it, int visits, int lane, bits64 *random) {
    const Rules *rules = &t->rules;
    int opened = it->header.opened, count = it->header.count;
    double mean[GROUPS], low = 0.0, scale = 1.0, exploration = t->weights[visits], untried = rules->fpu, own = 0.0;
    EACH(g) mean[g] = g * LANES + lane < opened ? it->sum[g] / (double)it->n[g] : 0.0;
    if (rules->normalize == BY_NODE || rules->fpu_parent) {
        int total = 0;
        EACH(g) total += it->n[g];
        own = (it->raw + ordered_sum(it->sum, 0, opened)) / (1.0 + (double)sum_of(total));
        if (rules->fpu_parent) untried = own - rules->fpu;
    }
    if (rules->normalize == BY_NODE) {
        double high = own;
        low = own;
        EACH(g) if (g * LANES + lane < opened) {
            low = mean[g] < low ? mean[g] : low;
            high = mean[g] > high ? mean[g] : high;
        }
        low = lowest_of(low);
        double span = highest_of(high) - low;
        scale = 1.0 / (span > LEAST_SPAN ? span : LEAST_SPAN);
    } else if (rules->normalize == BY_TREE) {
        double least = t->bounds[2 * tree], most = t->bounds[2 * tree + 1];
        if (most > least) {
            low = least;
            scale = 1.0 / (most - least);
        }
    }
    double score[GROUPS], best = -INFINITE;
    EACH(g) {
        int place = g * LANES + lane;
        double exploit = place < opened ? (mean[g] - low) * scale : untried;
        score[g] = place < count ? exploit + exploration * (double)it->prior[g] / (1.0 + (double)it->n[g]) : -INFINITE;
        best = score[g] > best ? score[g] : best;
    }
    best = highest_of(best);
    unsigned bits[GROUPS];
    int ties = 0;
    EACH(g) {
        // Of scores that are no numbers none is best, and the first place will do: the engine will hear of it.
        bits[g] = BALLOT(g * LANES + lane < count && score[g] == best) & WITH_PLACES;
        ties += COUNT_BITS(bits[g]);
    }
    return nth_place(bits, ties > 1 ? below(random, ties) : 0);
}
#else
typedef struct {
    double weight, low, span, untried;
} Bonus;

HERE double bonus_of(const Bonus *bonus, double q) { return bonus->weight * ((q - bonus->low) / bonus->span); }
HERE double at_least(float prior) { return (double)prior > LEAST_PRIOR ? (double)prior : LEAST_PRIOR; }

// `Completed::at` of `score/gumbel.rs`; `q` receives the values of opened places.
HERE Bonus complete(const Trees *t, const Node *it, int lane, double *q) {
    const Rules *rules = &t->rules;
    int opened = it->header.opened, total = 0, most = 0;
    double prior[GROUPS], low = INFINITE, high = -INFINITE;
    EACH(g) {
        int tried = g * LANES + lane < opened;
        q[g] = tried ? it->sum[g] / (double)it->n[g] : 0.0;
        prior[g] = tried ? at_least(it->prior[g]) : 0.0;
        total += it->n[g];
        most = it->n[g] > most ? it->n[g] : most;
        if (tried) {
            low = q[g] < low ? q[g] : low;
            high = q[g] > high ? q[g] : high;
        }
    }
    // Known to all lanes: they must not part.
    total = SHUFFLE(sum_of(total), 0);
    most = most_of(most);
    low = lowest_of(low);
    high = highest_of(high);
    double completing = it->raw;
    if (rules->mixed && total > 0) {
        double priors = ordered_sum(prior, 0, opened), share[GROUPS];
        EACH(g) share[g] = prior[g] * q[g] / priors;
        double weighted = ordered_sum(share, 0, opened);
        completing = (it->raw + (double)total * weighted) / ((double)total + 1.0);
    }
    if (opened < rules->actions) {
        low = completing < low ? completing : low;
        high = completing > high ? completing : high;
    }
    Bonus bonus = {(rules->maxvisit_init + (double)most) * rules->value_scale, 0.0, 1.0, 0.0};
    if (rules->rescale) {
        bonus.low = low;
        bonus.span = high - low > LEAST_SPAN ? high - low : LEAST_SPAN;
    }
    bonus.untried = bonus_of(&bonus, completing);
    return bonus;
}

// Of the places marked, the one with the highest score, the lowest action among equals. `best` and `action` receive its own.
HERE int best_of(const int *marked, const double *score, const Node *it, int lane, double *best, int *action) {
    double highest = -INFINITE;
    EACH(g) if (marked[g] && score[g] > highest) highest = score[g];
    highest = highest_of(highest);
    int first = 0x7fffffff;
    EACH(g) if (marked[g] && score[g] == highest) {
        int named = it->action[g] * 512 + g * LANES + lane;
        first = named < first ? named : first;
    }
    first = least_of(first);
    *best = highest;
    *action = first / 512;
    return first == 0x7fffffff ? -1 : first % 512;
}

// Inside the tree: where visits lag most behind the improved policy.
HERE int choose(const Trees *t, word tree, const Node *it, int visits, int lane, bits64 *random) {
    int opened = it->header.opened, count = it->header.count, total_visits = 0, marked[GROUPS];
    double q[GROUPS], prior[GROUPS], score[GROUPS];
    Bonus bonus = complete(t, it, lane, q);
    EACH(g) {
        prior[g] = (double)it->prior[g];
        total_visits += it->n[g];
    }
    double rest = ordered_sum(prior, opened, count);
    double most = rest > 0.0 ? bonus.untried : -INFINITE, own = -INFINITE;
    EACH(g) if (g * LANES + lane < opened) {
        score[g] = bonus_of(&bonus, q[g]);
        own = prior[g] > 0.0 && score[g] > own ? score[g] : own;
    }
    own = highest_of(own);
    most = own > most ? own : most;
    EACH(g) score[g] = g * LANES + lane < opened && prior[g] > 0.0 ? prior[g] * exp(score[g] - most) : 0.0;
    double untried = rest > 0.0 ? exp(bonus.untried - most) : 0.0;
    double total = ordered_sum(score, 0, opened) + rest * untried;
    double all = 1.0 + (double)sum_of(total_visits), best, other;
    EACH(g) {
        marked[g] = g * LANES + lane < opened;
        score[g] = score[g] / total - (double)it->n[g] / all;
    }
    int action, second;
    int place = best_of(marked, score, it, lane, &best, &action);
    if (opened < count) {
        EACH(g) {
            int at = g * LANES + lane;
            marked[g] = at >= opened && at < count;
        }
        int fresh = best_of(marked, prior, it, lane, &other, &second);
        other = other * untried / total;
        if (place < 0 || other > best || (other == best && second < action)) place = fresh;
    }
    // None is best where some are no numbers, of which the engine will hear.
    return SHUFFLE(place < 0 ? 0 : place, 0);
}

// How near visits are to what is wanted, greater where nearer: `halving.rs`.
HERE int nearness(int visits, int wanted) {
    if (visits == wanted) return 0x7fffffff;
    return visits < wanted ? visits - wanted + (1 << 30) : wanted - visits;
}

// At the root: sequential halving.
HERE int choose_first(const Trees *t, word tree, const Node *it, int done, int lane) {
    int opened = it->header.opened, count = it->header.count;
    int wanted = t->considered[tree * (t->rules.nodes - 1) + done];
    int nearest = opened < count ? nearness(0, wanted) : -0x7fffffff, marked[GROUPS];
    double q[GROUPS], score[GROUPS], draw[GROUPS];
    EACH(g) {
        int place = g * LANES + lane;
        draw[g] = place < count ? t->draws[tree * t->rules.actions + it->action[g]] : 0.0;
        if (place < opened && nearness(it->n[g], wanted) > nearest) nearest = nearness(it->n[g], wanted);
    }
    nearest = SHUFFLE(most_of(nearest), 0);
    Bonus bonus = complete(t, it, lane, q);
    EACH(g) {
        double sum = draw[g] + bonus_of(&bonus, q[g]);
        score[g] = sum > LEAST_SCORE ? sum : LEAST_SCORE;
        marked[g] = g * LANES + lane < opened && nearness(it->n[g], wanted) == nearest;
    }
    double best, other;
    int action, second;
    int place = best_of(marked, score, it, lane, &best, &action);
    if (opened < count && nearness(0, wanted) == nearest) {
        // Moves never tried differ by their draws alone.
        EACH(g) {
            int at = g * LANES + lane;
            marked[g] = at >= opened && at < count;
        }
        int fresh = best_of(marked, draw, it, lane, &other, &second);
        other = other + bonus.untried > LEAST_SCORE ? other + bonus.untried : LEAST_SCORE;
        if (place < 0 || other > best || (other == best && second < action)) place = fresh;
    }
    // None is best where some are no numbers, of which the engine will hear.
    return SHUFFLE(place < 0 ? 0 : place, 0);
}
#endif

// Logits become exp(logit - greatest) over their sum, as in `policy.rs`. Whether they are what logits may be.
HERE int softmax(double *logits, int count, int lane, float *priors) {
    int sound = 1;
    double least = INFINITE, most = -INFINITE;
    EACH(g) {
        if (g * LANES + lane < count) {
            if (!(logits[g] < INFINITE)) sound = 0;
            least = logits[g] < least ? logits[g] : least;
            most = logits[g] > most ? logits[g] : most;
        } else {
            logits[g] = -INFINITE;
        }
    }
    least = lowest_of(least);
    most = highest_of(most);
    EACH(g) logits[g] = exp(logits[g] - most);
    double total = ordered_sum(logits, 0, count);
    // Where all are alike, so are the priors.
    EACH(g) priors[g] = (float)(least == most ? 1.0 / (double)count : logits[g] / total);
    return least_of(sound) && most > -INFINITE;
}

// An edge that was never tried.
HERE void write_edge(const Trees *t, word edge, int action, float prior) {
    t->actions[edge] = (short)action;
    t->priors[edge] = prior;
    t->sums[edge] = 0.0;
    t->visits[edge] = 0;
    t->children[edge] = -1;
}

// The value of a leaf on the way back up (`backup.rs`): `gain` is for the player whose `turn` it is there.
HERE void back_up(const Trees *t, word tree, int depth, int leaf, int turn, double reward, double discount, double gain, int lane) {
    const Rules *rules = &t->rules;
    word root = tree * rules->nodes;
    const int *path = t->path + root;
    double low = INFINITE, high = -INFINITE;
    for (int end = depth; end > 0; end -= LANES) {
        int step = end - 1 - lane, here = step >= 0;
        int at = here ? path[step] : 0, is_last = !here || step + 1 == depth, under = is_last ? leaf : path[step + 1] / 512;
        word above = root + at / 512, edge = above * rules->actions + at % 512;
        int turned = t->headers[above].to_play != (is_last ? turn : t->headers[root + under].to_play);
        double mine = 0.0;
        int steps = end < LANES ? end : LANES;
#if CONNECT_FOUR
        for (int l = 0; l < steps; ++l) {
            gain = SHUFFLE(turned, l) ? -gain : gain;
            if (l == lane) mine = gain;
        }
#else
        double own_reward = is_last ? reward : t->rewards[root + under];
        double own_discount = is_last ? discount : t->discounts[root + under];
        for (int l = 0; l < steps; ++l) {
            double kept = SHUFFLE(turned, l) ? -gain : gain;
            gain = SHUFFLE(own_reward, l) + SHUFFLE(own_discount, l) * kept;
            if (l == lane) mine = gain;
        }
#endif
        if (here) {
            double sum = t->sums[edge] + mine;
            int visits = t->visits[edge] + 1;
            t->sums[edge] = sum;
            t->visits[edge] = visits;
            double mean = sum / (double)visits;
            low = mean < low ? mean : low;
            high = mean > high ? mean : high;
        }
    }
    if (rules->normalize == BY_TREE) {
        low = lowest_of_all(low);
        high = highest_of_all(high);
        if (lane == 0 && low < t->bounds[2 * tree]) t->bounds[2 * tree] = low;
        if (lane == 0 && high > t->bounds[2 * tree + 1]) t->bounds[2 * tree + 1] = high;
    }
}

#if CONNECT_FOUR
// A column takes seven bits, lowest cell first; the seventh stays empty.
#define BOTTOM 0x0000040810204081ULL
#define TOP (BOTTOM << 5)
#define BOARD ((TOP << 1) - BOTTOM)
#define CELLS 42

HERE int has_line(bits64 stones) {
    bits64 lines = 0;
    const int steps[4] = {1, 6, 7, 8};
    UNROLLED for (int i = 0; i < 4; ++i) {
        bits64 pairs = stones & (stones >> steps[i]);
        lines |= pairs & (pairs >> (2 * steps[i]));
    }
    return lines != 0;
}

// Writes a cell of what the network sees.
HERE void show(const Trees *t, word row, int plane, int cell, int is_set) {
    const Rules *rules = &t->rules;
    word at = row * 3 * CELLS + plane * rules->plane_step + cell / 7 * rules->row_step + cell % 7 * rules->column_step;
    unsigned shown = is_set ? (unsigned)rules->one : 0u;
    if (rules->bits == 16) ((unsigned short *)t->observations)[at] = (unsigned short)shown;
    else ((unsigned *)t->observations)[at] = shown;
}

// The network's answer to the last question.
HERE void apply(const Trees *t, word tree, word row, int leaf, int lane) {
    const Rules *rules = &t->rules;
    word node = tree * rules->nodes + leaf, first = node * rules->actions;
    Header header = t->headers[node];
    double logits[GROUPS], value = number(t->value, row, rules->value_type);
    float priors[GROUPS];
    EACH(g) {
        int place = g * LANES + lane, there = place < header.count;
        logits[g] = there ? number(t->logits, row * rules->actions + t->actions[first + place], rules->logits_type) : 0.0;
    }
    int sound = softmax(logits, header.count, lane, priors);
    EACH(g) if (g * LANES + lane < header.count) t->priors[first + g * LANES + lane] = priors[g];
    // Networks round: a value may lie a little outside.
    if (!(value >= -1.001f && value <= 1.001f)) sound = 0;
    value = value > 1.0 ? 1.0 : value < -1.0 ? -1.0 : value;
    if (lane == 0) {
        t->raw[node] = value;
        if (!sound) *t->unsound = 1;
    }
    back_up(t, tree, t->depth[tree], leaf, header.to_play, 0.0, 1.0, value, lane);
}

// Plays `action` at node `parent`, to node `child`: 1 if the game goes on, and the network is asked about the position.
HERE int arrive(const Trees *t, word tree, word row, int parent, int child, int action, int turn, int lane) {
    const Rules *rules = &t->rules;
    word root = tree * rules->nodes, node = root + child, first = node * rules->actions;
    bits64 own = t->boards[2 * (root + parent)], other = t->boards[2 * (root + parent) + 1];
    bits64 cell = (((own | other) + BOTTOM) & BOARD) & (0x7FULL << (7 * action));
    bits64 moved = own | cell, filled = moved | other;
    int won = has_line(moved), over = won || filled == BOARD, count = 0;
    for (int column = lane; !over && column - lane < 7; column += LANES) {
        int open = column < 7 && !(filled >> (7 * column + 5) & 1);
        unsigned bits = BALLOT(open);
        int place = count + COUNT_BITS(bits & ((1u << lane) - 1u));
        if (open) write_edge(t, first + place, column, 0.0f);
        count += COUNT_BITS(bits);
    }
    if (lane == 0) {
        Header header = {1 - turn, count, 0, 0};
        t->headers[node] = header;
        t->raw[node] = won ? -1.0 : 0.0;
        t->boards[2 * node] = other;
        t->boards[2 * node + 1] = moved;
    }
    if (over) return 0;
    // Rows from the top: stones of the player to move, of the other, and whether it is player 0's turn.
    for (int cell = lane; cell < CELLS; cell += LANES) {
        int bit = cell % 7 * 7 + 5 - cell / 7;
        show(t, row, 0, cell, (int)(other >> bit & 1));
        show(t, row, 1, cell, (int)(moved >> bit & 1));
        show(t, row, 2, cell, turn == 1);
    }
    return 1;
}
#else
// Gives `node` its moves: `latent.rs`. Whether the logits are what they may be.
HERE int expand(const Trees *t, word row, word node, int lane) {
    int actions = t->rules.actions, kept = 0;
    double logits[GROUPS];
    float priors[GROUPS];
    EACH(g) {
        int action = g * LANES + lane;
        logits[g] = action < actions ? number(t->logits, row * actions + action, t->rules.logits_type) : 0.0;
    }
    int sound = softmax(logits, actions, lane, priors);
    word first = node * actions;
    EACH(g) {
        int action = g * LANES + lane, stays = action < actions && priors[g] > 0.0f;
        unsigned bits = BALLOT(stays);
        int place = kept + COUNT_BITS(bits & ((1u << lane) - 1u));
        if (stays) write_edge(t, first + place, action, priors[g]);
        kept += COUNT_BITS(bits);
    }
    sound = sound && kept > 0;
    MEET();
    if (lane == 0) {
        if (!sound) t->actions[first] = 0;
        t->headers[node].count = kept > 0 ? kept : 1;
        t->headers[node].opened = 0;
    }
    return sound;
}

// The model's answer to the last question: a node for its leaf, and its value on the way back up.
HERE void apply(const Trees *t, word tree, word row, int leaf, int lane) {
    const Rules *rules = &t->rules;
    word root = tree * rules->nodes, node = root + leaf;
    int sound = expand(t, row, node, lane);
    double reward = number(t->reward, row, rules->reward_type), value = number(t->value, row, rules->value_type);
    double discount = rules->discount;
    int depth = t->depth[tree], chooser = t->headers[root + t->path[root + depth - 1] / 512].to_play;
    int turn = rules->players == 2 ? 1 - chooser : chooser;
    if (rules->has_discount) {
        discount = number(t->own_discount, row, rules->discount_type);
        if (!(discount >= -1.0 && discount <= 1.0) || (discount < 0.0 && rules->players == 1)) sound = 0;
        if (discount < 0.0) discount = -discount;
        else turn = chooser;
    }
    if (!(reward >= -LARGEST && reward <= LARGEST) || !(value >= -LARGEST && value <= LARGEST)) sound = 0;
    if (lane == 0) {
        t->headers[node].to_play = turn;
        t->raw[node] = value;
        t->rewards[node] = reward;
        t->discounts[node] = discount;
        if (!sound) *t->unsound = 1;
    }
    back_up(t, tree, depth, leaf, turn, reward, discount, value, lane);
}

// Asks the model for the step from node `parent`.
HERE int arrive(const Trees *t, word tree, word row, int parent, int child, int action, int turn, int lane) {
    word root = tree * t->rules.nodes;
    if (lane == 0) {
        t->parents[row] = t->slots[root + parent];
        t->chosen[row] = action;
        t->targets[row] = t->slots[root + child];
    }
    return 1;
}
#endif

// The root as the engine gave it.
HERE void plant(const Trees *t, word tree, int lane) {
    int actions = t->rules.actions;
    word root = tree * t->rules.nodes, first = root * actions;
    for (int place = lane; place < actions; place += LANES) {
        write_edge(t, first + place, t->root_actions[tree * actions + place], t->root_priors[tree * actions + place]);
    }
    if (lane == 0) {
        Header header = {t->root_to_play[tree], t->root_count[tree], 0, 0};
        t->headers[root] = header;
        t->raw[root] = t->root_raw[tree];
        t->bounds[2 * tree] = INFINITE;
        t->bounds[2 * tree + 1] = -INFINITE;
#if CONNECT_FOUR
        t->boards[2 * root] = t->root_boards[2 * tree];
        t->boards[2 * root + 1] = t->root_boards[2 * tree + 1];
#else
        t->rewards[root] = 0.0;
        t->discounts[root] = 1.0;
#endif
    }
}

// Simulations until one asks a question: down to a move never tried, which is opened. An end of the game needs no answer. A tree that
// has found a win would go there over and over, and all others would wait for it: it goes on in the next step.
HERE int search(const Trees *t, word tree, word row, int *simulations, int *nodes, int lane) {
    word root = tree * t->rules.nodes;
    int done = *simulations, made = *nodes, asks = 0;
    for (int tries = 0; !asks && tries < PATIENCE && done < t->rules.nodes - 1; ++tries) {
        // Purpose 1: ties of a selection.
        bits64 random = fold(fold(t->keys[tree], t->begun[tree] + (bits64)done), 1);
        int node = 0, visits = 1 + done, goes_on = 1;
        for (int depth = 0; goes_on; ++depth) {
            Node it = load(t, root + node, lane);
            if (it.header.count == 0) {
                MEET();
                back_up(t, tree, depth, node, it.header.to_play, 0.0, 1.0, it.raw, lane);
                goes_on = 0;
                continue;
            }
#if GUMBEL
            int place = depth == 0 ? choose_first(t, tree, &it, done, lane) : choose(t, tree, &it, visits, lane, &random);
#else
            int place = choose(t, tree, &it, visits, lane, &random);
#endif
            word first = (root + node) * t->rules.actions;
            int opened = it.header.opened;
            if (place < opened) {
                if (lane == 0) t->path[root + depth] = node * 512 + place;
                visits = at_place(it.n, place);
                node = at_place(it.child, place);
                continue;
            }
            int action = at_place(it.action, place), other = at_place(it.action, opened);
            float prior = prior_at(it.prior, place), other_prior = prior_at(it.prior, opened);
            made += 1;
            if (lane == 0) {
                t->path[root + depth] = node * 512 + opened;
                t->actions[first + place] = (short)other;
                t->priors[first + place] = other_prior;
                t->actions[first + opened] = (short)action;
                t->priors[first + opened] = prior;
                t->children[first + opened] = (short)made;
                t->headers[root + node].opened = opened + 1;
                t->depth[tree] = depth + 1;
            }
            asks = arrive(t, tree, row, node, made, action, it.header.to_play, lane);
            MEET();
            if (!asks) back_up(t, tree, depth + 1, made, 1 - it.header.to_play, 0.0, 1.0, t->raw[root + made], lane);
            goes_on = 0;
        }
        MEET();
        done += !asks;
    }
    *simulations = done;
    *nodes = made;
    return asks;
}

// One step of the tree of a row: the answer to the last question, then the next question, if one is to be asked.
HERE void step_row(const Trees *t, word row, int lane, int goes_on) {
    word tree = t->order[row];
    int done = t->done[tree], made = t->made[tree], asked = t->asked[tree];
    if (done < 0) {
        plant(t, tree, lane);
        done = made = 0;
    } else if (asked) {
        apply(t, tree, row, made, lane);
        done += 1;
    }
    MEET();
    asked = goes_on ? search(t, tree, row, &done, &made, lane) : 0;
    MEET();
    if (lane == 0) {
        t->done[tree] = done;
        t->made[tree] = made;
        t->asked[tree] = asked;
        t->rows[tree] += asked;
    }
}

#ifdef __CUDACC_RTC__
extern "C" __global__ void __launch_bounds__(32 * WARPS) step(const __grid_constant__ Trees t, int goes_on) {
    word row = (word)(blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES);
    if (row < t.rules.rows) step_row(&t, row, threadIdx.x % LANES, goes_on);
}
#else
void step(const Trees *t, int goes_on) {
    for (word row = 0; row < t->rules.rows; ++row) step_row(t, row, 0, goes_on);
}
#endif
