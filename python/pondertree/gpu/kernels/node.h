// Nodes and edges. Edges are ordered by first visit; unvisited ones follow.

// A node in registers, distributed over a warp.
typedef struct {
    Header header;
    double raw;
    double sum[GROUPS];
    int n[GROUPS];
    float prior[GROUPS];
    int action[GROUPS];
    int child[GROUPS];
} Node;

// Loads a node. All loads are issued at once; invalid places are masked afterwards.
DEVICE Node load(const Trees *t, word node, int lane) {
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

// Broadcasts the element of a place.
#define AT_PLACE(name, type)                                                                                                   \
    DEVICE type name(const type *numbers, int place) {                                                                         \
        type found = 0;                                                                                                        \
        EACH(g) {                                                                                                              \
            type one = SHUFFLE(numbers[g], place % LANES);                                                                     \
            if (place / LANES == g) found = one;                                                                               \
        }                                                                                                                      \
        return found;                                                                                                          \
    }
AT_PLACE(at_place, int)
AT_PLACE(prior_at, float)

// The place of the set bit number `skip`, in the order of places.
DEVICE int nth_place(const unsigned *bits, int skip) {
    int found = 0;
    EACH(g) {
        int count = COUNT_BITS(bits[g]);
        if (skip >= 0 && skip < count) {
            unsigned left = bits[g];
            for (int i = 0; i < skip; ++i) left &= left - 1;
            found = g * LANES + COUNT_BITS((left & (0u - left)) - 1u);
        }
        skip -= count;
    }
    return found;
}

// Softmax as in `search/priors.rs`; `logits` are overwritten. Returns whether they were valid.
DEVICE int softmax(double *logits, int count, int lane, float *priors) {
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
    // Equal logits give exactly equal priors.
    EACH(g) priors[g] = (float)(least == most ? 1.0 / (double)count : logits[g] / total);
    return least_of(sound) && most > -INFINITE;
}

// Writes an unvisited edge.
DEVICE void write_edge(const Trees *t, word edge, int action, float prior) {
    t->actions[edge] = (short)action;
    t->priors[edge] = prior;
    t->sums[edge] = 0.0;
    t->visits[edge] = 0;
    t->children[edge] = -1;
}
