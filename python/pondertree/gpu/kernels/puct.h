// Action selection by PUCT, as in AlphaZero and MuZero (`search/score/puct.rs`, `log_puct.rs`).

#define MIN_SPAN 1e-8

// The place with the highest score; ties are broken at random.
DEVICE int choose(const Trees *t, word tree, const Node *it, int visits, int lane, bits64 *random) {
    const Rules *rules = &t->rules;
    int opened = it->header.opened, count = it->header.count;
    double mean[GROUPS], low = 0.0, scale = 1.0, exploration = t->weights[visits], untried = rules->fpu, own = 0.0;
    EACH(g) mean[g] = g * LANES + lane < opened ? it->sum[g] / (double)it->n[g] : 0.0;
    if (rules->normalize == BY_NODE || rules->fpu_parent) {
        int total = 0;
        EACH(g) total += it->n[g];
        own = (it->raw + ordered_sum(it->sum, 0, opened)) / (1.0 + (double)sum_of(total));
        if (rules->fpu_parent) untried = own - rules->fpu;
    }
    if (rules->normalize == BY_NODE) {
        double high = own;
        low = own;
        EACH(g) if (g * LANES + lane < opened) {
            low = mean[g] < low ? mean[g] : low;
            high = mean[g] > high ? mean[g] : high;
        }
        low = lowest_of(low);
        double span = highest_of(high) - low;
        scale = 1.0 / (span > MIN_SPAN ? span : MIN_SPAN);
    } else if (rules->normalize == BY_TREE) {
        double least = t->bounds[2 * tree], most = t->bounds[2 * tree + 1];
        if (most > least) {
            low = least;
            scale = 1.0 / (most - least);
        }
    }
    double score[GROUPS], best = -INFINITE;
    EACH(g) {
        int place = g * LANES + lane;
        double exploit = place < opened ? (mean[g] - low) * scale : untried;
        score[g] = place < count ? exploit + exploration * (double)it->prior[g] / (1.0 + (double)it->n[g]) : -INFINITE;
        best = score[g] > best ? score[g] : best;
    }
    best = highest_of(best);
    unsigned bits[GROUPS];
    int ties = 0;
    EACH(g) {
        // If scores are NaN no bit is set and the first place is taken; `unsound` is set then.
        bits[g] = BALLOT(g * LANES + lane < count && score[g] == best) & WITH_PLACES;
        ties += COUNT_BITS(bits[g]);
    }
    return nth_place(bits, ties > 1 ? below(random, ties) : 0);
}
