// The way back up.

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
