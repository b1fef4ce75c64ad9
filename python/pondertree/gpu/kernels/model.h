// A learned model: positions are hidden states in slots, and it is asked for the step from one to the next.

#define LARGEST 1e12

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
