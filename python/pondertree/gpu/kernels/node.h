// Nodes and their edges: in the order in which they were opened, those never tried behind.

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
