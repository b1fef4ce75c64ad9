// Action selection by PUCT, as in AlphaZero and MuZero (`search/score/puct.rs`, `log_puct.rs`).

// The place with the highest score; ties are broken at random.
DEVICE int select_edge(const TreeArrays *t, int64 tree, const Node *node, int visits, int lane, uint64 *random) {
    const SearchParameters *params = &t->params;
    int opened = node->header.opened, count = node->header.count;
    double mean[GROUPS], low = 0.0, scale = 1.0, exploration = t->weights[visits], untried = params->fpu, own = 0.0;
    FOR_EACH_GROUP(g) mean[g] = g * LANES + lane < opened ? node->sum[g] / (double)node->n[g] : 0.0;
    if (params->normalize == BY_NODE || params->fpu_parent) {
        int total = 0;
        FOR_EACH_GROUP(g) total += node->n[g];
        own = (node->raw + ordered_sum(node->sum, 0, opened)) / (1.0 + (double)warp_sum_i32(total));
        if (params->fpu_parent) untried = own - params->fpu;
    }
    if (params->normalize == BY_NODE) {
        double high = own;
        low = own;
        FOR_EACH_GROUP(g) if (g * LANES + lane < opened) {
            low = mean[g] < low ? mean[g] : low;
            high = mean[g] > high ? mean[g] : high;
        }
        low = warp_min_f64(low);
        double span = warp_max_f64(high) - low;
        scale = 1.0 / (span > MIN_SPAN ? span : MIN_SPAN);
    } else if (params->normalize == BY_TREE) {
        double least = t->bounds[2 * tree], most = t->bounds[2 * tree + 1];
        if (most > least) {
            low = least;
            scale = 1.0 / (most - least);
        }
    }
    double score[GROUPS], best = -INFINITE;
    FOR_EACH_GROUP(g) {
        int place = g * LANES + lane;
        double exploit = place < opened ? (mean[g] - low) * scale : untried;
        score[g] = place < count ? exploit + exploration * (double)node->prior[g] / (1.0 + (double)node->n[g]) : -INFINITE;
        best = score[g] > best ? score[g] : best;
    }
    best = warp_max_f64(best);
    unsigned bits[GROUPS];
    int ties = 0;
    FOR_EACH_GROUP(g) {
        // If scores are NaN no bit is set and the first place is taken; `has_invalid_output` is set then.
        bits[g] = BALLOT(g * LANES + lane < count && score[g] == best) & ACTIVE_MASK;
        ties += COUNT_BITS(bits[g]);
    }
    return nth_place(bits, ties > 1 ? below(random, ties) : 0);
}
