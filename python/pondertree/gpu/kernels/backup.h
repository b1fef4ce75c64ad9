// Backup (`search/backup.rs`).

// Adds the value of a leaf to all edges of the path; `gain` is from the perspective of `to_play`, who moves at the leaf.
DEVICE void back_up(const Trees *t, word tree, int depth, int leaf, int to_play, double reward, double discount, double gain, int lane) {
    const Rules *rules = &t->rules;
    word root = tree * rules->nodes;
    const int *path = t->path + root;
    double low = INFINITE, high = -INFINITE;
    for (int end = depth; end > 0; end -= LANES) {
        int step = end - 1 - lane, active = step >= 0;
        int at = active ? path[step] : 0, is_last = !active || step + 1 == depth, under = is_last ? leaf : path[step + 1] / 512;
        word above = root + at / 512, edge = above * rules->actions + at % 512;
        int flips = t->headers[above].to_play != (is_last ? to_play : t->headers[root + under].to_play);
        double own_gain = 0.0;
        int steps = end < LANES ? end : LANES;
#if CONNECT_FOUR
        for (int l = 0; l < steps; ++l) {
            gain = SHUFFLE(flips, l) ? -gain : gain;
            if (l == lane) own_gain = gain;
        }
#else
        double own_reward = is_last ? reward : t->rewards[root + under];
        double own_discount = is_last ? discount : t->discounts[root + under];
        for (int l = 0; l < steps; ++l) {
            double signed_gain = SHUFFLE(flips, l) ? -gain : gain;
            gain = SHUFFLE(own_reward, l) + SHUFFLE(own_discount, l) * signed_gain;
            if (l == lane) own_gain = gain;
        }
#endif
        if (active) {
            double sum = t->sums[edge] + own_gain;
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
