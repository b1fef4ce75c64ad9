// A learned model: nodes hold slots of hidden states, and the model makes the steps between them.

#define MAX_MAGNITUDE 1e12

// Creates the edges of `node` from the logits (`search/expand_latent.rs`). Returns whether the logits are valid.
DEVICE int expand(const TreeArrays *t, int64 row, int64 node, int lane) {
    int actions = t->params.actions, edges = 0;
    double logits[GROUPS];
    float priors[GROUPS];
    FOR_EACH_GROUP(g) {
        int action = g * LANES + lane;
        logits[g] = action < actions ? number(t->logits, row * actions + action, t->params.logits_type) : 0.0;
    }
    int is_valid = softmax(logits, actions, lane, priors);
    int64 first = node * actions;
    FOR_EACH_GROUP(g) {
        int action = g * LANES + lane, is_edge = action < actions && priors[g] > 0.0f;
        unsigned bits = BALLOT(is_edge);
        int place = edges + COUNT_BITS(bits & ((1u << lane) - 1u));
        if (is_edge) write_edge(t, first + place, action, priors[g]);
        edges += COUNT_BITS(bits);
    }
    is_valid = is_valid && edges > 0;
    SYNC_WARP();
    if (lane == 0) {
        if (!is_valid) t->actions[first] = 0;
        t->headers[node].count = edges > 0 ? edges : 1;
        t->headers[node].opened = 0;
    }
    return is_valid;
}

// Applies the model's output for the pending leaf: expands the node and backs its value up.
DEVICE void apply(const TreeArrays *t, int64 tree, int64 row, int leaf, int lane) {
    const SearchParameters *params = &t->params;
    int64 root = tree * params->nodes, node = root + leaf;
    int is_valid = expand(t, row, node, lane);
    double reward = number(t->reward, row, params->reward_type), value = number(t->value, row, params->value_type);
    double discount = params->discount;
    int depth = t->depth[tree], chooser = t->headers[root + PATH_NODE(t->path[root + depth - 1])].to_play;
    int to_play = params->players == 2 ? 1 - chooser : chooser;
    if (params->has_discount) {
        discount = number(t->model_discount, row, params->discount_type);
        if (!(discount >= -1.0 && discount <= 1.0) || (discount < 0.0 && params->players == 1)) is_valid = 0;
        if (discount < 0.0) discount = -discount;
        else to_play = chooser;
    }
    if (!(reward >= -MAX_MAGNITUDE && reward <= MAX_MAGNITUDE)) is_valid = 0;
    if (!(value >= -MAX_MAGNITUDE && value <= MAX_MAGNITUDE)) is_valid = 0;
    if (lane == 0) {
        t->headers[node].to_play = to_play;
        t->raw[node] = value;
        t->rewards[node] = reward;
        t->discounts[node] = discount;
        if (!is_valid) *t->has_invalid_output = 1;
    }
    back_up(t, tree, depth, leaf, to_play, reward, discount, value, lane);
}

// Writes the request for the step from `parent` to `child`.
DEVICE int expand_edge(const TreeArrays *t, int64 tree, int64 row, int parent, int child, int action, int to_play, int lane) {
    int64 root = tree * t->params.nodes;
    if (lane == 0) {
        t->request_parents[row] = t->slots[root + parent];
        t->request_actions[row] = action;
        t->request_slots[row] = t->slots[root + child];
    }
    return 1;
}
