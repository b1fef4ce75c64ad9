// Nodes and edges. Edges are ordered by first visit; unvisited ones follow. A place is the index of an edge in its node.

#define MIN_SPAN 1e-8
// An entry of a path: a node and the place of the edge that the descent takes.
#define PLACE_STRIDE 512
#define PATH_ENTRY(node, place) ((node) * PLACE_STRIDE + (place))
#define PATH_NODE(entry) ((entry) / PLACE_STRIDE)
#define PATH_PLACE(entry) ((entry) % PLACE_STRIDE)

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
DEVICE Node load(const TreeArrays *t, int64 index, int lane) {
    Node node;
    int actions = t->params.actions;
    int64 first = index * actions;
    node.header = t->headers[index];
    node.raw = t->raw[index];
    FOR_EACH_GROUP(g) {
        int place = g * LANES + lane, inside = place < actions;
        node.sum[g] = inside ? t->sums[first + place] : 0.0;
        node.n[g] = inside ? t->visits[first + place] : 0;
        node.prior[g] = inside ? t->priors[first + place] : 0.0f;
        node.action[g] = inside ? t->actions[first + place] : 0;
        node.child[g] = inside ? t->children[first + place] : 0;
    }
    FOR_EACH_GROUP(g) {
        int place = g * LANES + lane;
        if (place >= node.header.opened) {
            node.sum[g] = 0.0;
            node.n[g] = 0;
        }
        if (place >= node.header.count) {
            node.prior[g] = 0.0f;
            node.action[g] = 32767;
        }
    }
    return node;
}

// Broadcasts the element of a place.
#define AT_PLACE(name, type)                                                                                                   \
    DEVICE type name(const type *numbers, int place) {                                                                         \
        type found = 0;                                                                                                        \
        FOR_EACH_GROUP(g) {                                                                                                    \
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
    FOR_EACH_GROUP(g) {
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
    int is_valid = 1;
    double least = INFINITE, most = -INFINITE;
    FOR_EACH_GROUP(g) {
        if (g * LANES + lane < count) {
            if (!(logits[g] < INFINITE)) is_valid = 0;
            least = logits[g] < least ? logits[g] : least;
            most = logits[g] > most ? logits[g] : most;
        } else {
            logits[g] = -INFINITE;
        }
    }
    least = warp_min_f64(least);
    most = warp_max_f64(most);
    FOR_EACH_GROUP(g) logits[g] = exp(logits[g] - most);
    double total = ordered_sum(logits, 0, count);
    // Equal logits give exactly equal priors.
    FOR_EACH_GROUP(g) priors[g] = (float)(least == most ? 1.0 / (double)count : logits[g] / total);
    return warp_min_i32(is_valid) && most > -INFINITE;
}

// Writes an unvisited edge.
DEVICE void write_edge(const TreeArrays *t, int64 edge, int action, float prior) {
    t->actions[edge] = (short)action;
    t->priors[edge] = prior;
    t->sums[edge] = 0.0;
    t->visits[edge] = 0;
    t->children[edge] = -1;
}
