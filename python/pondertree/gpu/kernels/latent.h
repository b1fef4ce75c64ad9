// A learned model: nodes hold slots of hidden states, and the model makes the steps between them.

#define MAX_MAGNITUDE 1e12

// Creates the edges of `node` from the logits (`search/expand_latent.rs`). Returns whether the logits are valid.
DEVICE int expand(const Trees *t, word row, word node, int lane) {
    int actions = t->rules.actions, edges = 0;
    double logits[GROUPS];
    float priors[GROUPS];
    EACH(g) {
        int action = g * LANES + lane;
        logits[g] = action < actions ? number(t->logits, row * actions + action, t->rules.logits_type) : 0.0;
    }
    int sound = softmax(logits, actions, lane, priors);
    word first = node * actions;
    EACH(g) {
        int action = g * LANES + lane, is_edge = action < actions && priors[g] > 0.0f;
        unsigned bits = BALLOT(is_edge);
        int place = edges + COUNT_BITS(bits & ((1u << lane) - 1u));
        if (is_edge) write_edge(t, first + place, action, priors[g]);
        edges += COUNT_BITS(bits);
    }
    sound = sound && edges > 0;
    SYNC_WARP();
    if (lane == 0) {
        if (!sound) t->actions[first] = 0;
        t->headers[node].count = edges > 0 ? edges : 1;
        t->headers[node].opened = 0;
    }
    return sound;
}

// Applies the model's output for the pending leaf: expands the node and backs its value up.
DEVICE void apply(const Trees *t, word tree, word row, int leaf, int lane) {
    const Rules *rules = &t->rules;
    word root = tree * rules->nodes, node = root + leaf;
    int sound = expand(t, row, node, lane);
    double reward = number(t->reward, row, rules->reward_type), value = number(t->value, row, rules->value_type);
    double discount = rules->discount;
    int depth = t->depth[tree], chooser = t->headers[root + t->path[root + depth - 1] / 512].to_play;
    int to_play = rules->players == 2 ? 1 - chooser : chooser;
    if (rules->has_discount) {
        discount = number(t->own_discount, row, rules->discount_type);
        if (!(discount >= -1.0 && discount <= 1.0) || (discount < 0.0 && rules->players == 1)) sound = 0;
        if (discount < 0.0) discount = -discount;
        else to_play = chooser;
    }
    if (!(reward >= -MAX_MAGNITUDE && reward <= MAX_MAGNITUDE) || !(value >= -MAX_MAGNITUDE && value <= MAX_MAGNITUDE)) sound = 0;
    if (lane == 0) {
        t->headers[node].to_play = to_play;
        t->raw[node] = value;
        t->rewards[node] = reward;
        t->discounts[node] = discount;
        if (!sound) *t->unsound = 1;
    }
    back_up(t, tree, depth, leaf, to_play, reward, discount, value, lane);
}

// Writes the request for the step from `parent` to `child`.
DEVICE int expand_edge(const Trees *t, word tree, word row, int parent, int child, int action, int to_play, int lane) {
    word root = tree * t->rules.nodes;
    if (lane == 0) {
        t->parents[row] = t->slots[root + parent];
        t->chosen[row] = action;
        t->targets[row] = t->slots[root + child];
    }
    return 1;
}
