// Backup (`search/backup.rs`).

// Adds the value of a leaf to all edges of the path; `gain` is from the perspective of `to_play`, who moves entry the leaf.
DEVICE void back_up(const TreeArrays *t, int64 tree, int depth, int leaf, int to_play, double reward, double discount, double gain,
                    int lane) {
    const SearchParameters *params = &t->params;
    int64 root = tree * params->nodes;
    const int *path = t->path + root;
    double low = INFINITE, high = -INFINITE;
    for (int end = depth; end > 0; end -= LANES) {
        int step = end - 1 - lane, active = step >= 0;
        int entry = active ? path[step] : 0, is_last = !active || step + 1 == depth;
        int under = is_last ? leaf : PATH_NODE(path[step + 1]);
        int64 above = root + PATH_NODE(entry), edge = above * params->actions + PATH_PLACE(entry);
        int flips = t->headers[above].to_play != (is_last ? to_play : t->headers[root + under].to_play);
        double edge_gain = 0.0;
        int steps = end < LANES ? end : LANES;
#if CONNECT_FOUR
        for (int l = 0; l < steps; ++l) {
            gain = SHUFFLE(flips, l) ? -gain : gain;
            if (l == lane) edge_gain = gain;
        }
#else
        double edge_reward = is_last ? reward : t->rewards[root + under];
        double edge_discount = is_last ? discount : t->discounts[root + under];
        for (int l = 0; l < steps; ++l) {
            double signed_gain = SHUFFLE(flips, l) ? -gain : gain;
            gain = SHUFFLE(edge_reward, l) + SHUFFLE(edge_discount, l) * signed_gain;
            if (l == lane) edge_gain = gain;
        }
#endif
        if (active) {
            double sum = t->sums[edge] + edge_gain;
            int visits = t->visits[edge] + 1;
            t->sums[edge] = sum;
            t->visits[edge] = visits;
            double mean = sum / (double)visits;
            low = mean < low ? mean : low;
            high = mean > high ? mean : high;
        }
    }
    if (params->normalize == BY_TREE) {
        low = full_warp_min_f64(low);
        high = full_warp_max_f64(high);
        if (lane == 0 && low < t->bounds[2 * tree]) t->bounds[2 * tree] = low;
        if (lane == 0 && high > t->bounds[2 * tree + 1]) t->bounds[2 * tree + 1] = high;
    }
}
