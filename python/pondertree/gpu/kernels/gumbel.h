// Action selection of Gumbel AlphaZero and MuZero (`search/score/gumbel.rs`).

#define MIN_PRIOR 1.17549435082228750797e-38
#define MIN_SCORE -1e9

typedef struct {
    double weight, low, span, untried;
} Bonus;

DEVICE double bonus_of(const Bonus *bonus, double q) { return bonus->weight * ((q - bonus->low) / bonus->span); }
DEVICE double clamped_prior(float prior) { return (double)prior > MIN_PRIOR ? (double)prior : MIN_PRIOR; }

// Completed Q-values: `q` receives the means of opened edges, the result the transformation of all.
DEVICE Bonus complete_q(const TreeArrays *t, const Node *node, int lane, double *q) {
    const SearchParameters *params = &t->params;
    int opened = node->header.opened, total = 0, most = 0;
    double prior[GROUPS], low = INFINITE, high = -INFINITE;
    FOR_EACH_GROUP(g) {
        int tried = g * LANES + lane < opened;
        q[g] = tried ? node->sum[g] / (double)node->n[g] : 0.0;
        prior[g] = tried ? clamped_prior(node->prior[g]) : 0.0;
        total += node->n[g];
        most = node->n[g] > most ? node->n[g] : most;
        if (tried) {
            low = q[g] < low ? q[g] : low;
            high = q[g] > high ? q[g] : high;
        }
    }
    // Broadcast, so that control flow stays uniform across the warp.
    total = SHUFFLE(warp_sum_i32(total), 0);
    most = warp_max_i32(most);
    low = warp_min_f64(low);
    high = warp_max_f64(high);
    double completing = node->raw;
    if (params->use_mixed_value && total > 0) {
        double priors = ordered_sum(prior, 0, opened), share[GROUPS];
        FOR_EACH_GROUP(g) share[g] = prior[g] * q[g] / priors;
        double weighted = ordered_sum(share, 0, opened);
        completing = (node->raw + (double)total * weighted) / ((double)total + 1.0);
    }
    if (opened < params->actions) {
        low = completing < low ? completing : low;
        high = completing > high ? completing : high;
    }
    Bonus bonus = {(params->maxvisit_init + (double)most) * params->value_scale, 0.0, 1.0, 0.0};
    if (params->rescale_values) {
        bonus.low = low;
        bonus.span = high - low > MIN_SPAN ? high - low : MIN_SPAN;
    }
    bonus.untried = bonus_of(&bonus, completing);
    return bonus;
}

// The marked place with the highest score, ties by lowest action; -1 if there is none. Writes its score and action.
DEVICE int best_of(const int *marked, const double *score, const Node *node, int lane, double *best, int *action) {
    double highest = -INFINITE;
    FOR_EACH_GROUP(g) if (marked[g] && score[g] > highest) highest = score[g];
    highest = warp_max_f64(highest);
    int first = 0x7fffffff;
    FOR_EACH_GROUP(g) if (marked[g] && score[g] == highest) {
        int named = node->action[g] * PLACE_STRIDE + g * LANES + lane;
        first = named < first ? named : first;
    }
    first = warp_min_i32(first);
    *best = highest;
    *action = first / PLACE_STRIDE;
    return first == 0x7fffffff ? -1 : first % PLACE_STRIDE;
}

// Interior nodes: the edge whose visits lag most behind the improved policy.
DEVICE int select_edge(const TreeArrays *t, int64 tree, const Node *node, int visits, int lane, uint64 *random) {
    int opened = node->header.opened, count = node->header.count, total_visits = 0, marked[GROUPS];
    double q[GROUPS], prior[GROUPS], score[GROUPS];
    Bonus bonus = complete_q(t, node, lane, q);
    FOR_EACH_GROUP(g) {
        prior[g] = (double)node->prior[g];
        total_visits += node->n[g];
    }
    double rest = ordered_sum(prior, opened, count);
    double most = rest > 0.0 ? bonus.untried : -INFINITE, own = -INFINITE;
    FOR_EACH_GROUP(g) if (g * LANES + lane < opened) {
        score[g] = bonus_of(&bonus, q[g]);
        own = prior[g] > 0.0 && score[g] > own ? score[g] : own;
    }
    own = warp_max_f64(own);
    most = own > most ? own : most;
    FOR_EACH_GROUP(g) score[g] = g * LANES + lane < opened && prior[g] > 0.0 ? prior[g] * exp(score[g] - most) : 0.0;
    double untried = rest > 0.0 ? exp(bonus.untried - most) : 0.0;
    double total = ordered_sum(score, 0, opened) + rest * untried;
    double all = 1.0 + (double)warp_sum_i32(total_visits), best, other;
    FOR_EACH_GROUP(g) {
        marked[g] = g * LANES + lane < opened;
        score[g] = score[g] / total - (double)node->n[g] / all;
    }
    int action, second;
    int place = best_of(marked, score, node, lane, &best, &action);
    if (opened < count) {
        FOR_EACH_GROUP(g) {
            int at = g * LANES + lane;
            marked[g] = at >= opened && at < count;
        }
        int fresh = best_of(marked, prior, node, lane, &other, &second);
        other = other * untried / total;
        if (place < 0 || other > best || (other == best && second < action)) place = fresh;
    }
    // No place is best if scores are NaN; `has_invalid_output` is set then, and the engine repeats the search.
    return SHUFFLE(place < 0 ? 0 : place, 0);
}

// Closeness of a visit count to the scheduled one, greater where closer (`search/sequential_halving.rs`).
DEVICE int nearness(int visits, int target) {
    if (visits == target) return 0x7fffffff;
    return visits < target ? visits - target + (1 << 30) : target - visits;
}

// The root: sequential halving.
DEVICE int select_root_edge(const TreeArrays *t, int64 tree, const Node *node, int simulations, int lane) {
    int opened = node->header.opened, count = node->header.count;
    int target = t->considered[tree * (t->params.nodes - 1) + simulations];
    int nearest = opened < count ? nearness(0, target) : -0x7fffffff, marked[GROUPS];
    double q[GROUPS], score[GROUPS], draw[GROUPS];
    FOR_EACH_GROUP(g) {
        int place = g * LANES + lane;
        draw[g] = place < count ? t->draws[tree * t->params.actions + node->action[g]] : 0.0;
        if (place < opened && nearness(node->n[g], target) > nearest) nearest = nearness(node->n[g], target);
    }
    nearest = SHUFFLE(warp_max_i32(nearest), 0);
    Bonus bonus = complete_q(t, node, lane, q);
    FOR_EACH_GROUP(g) {
        double sum = draw[g] + bonus_of(&bonus, q[g]);
        score[g] = sum > MIN_SCORE ? sum : MIN_SCORE;
        marked[g] = g * LANES + lane < opened && nearness(node->n[g], target) == nearest;
    }
    double best, other;
    int action, second;
    int place = best_of(marked, score, node, lane, &best, &action);
    if (opened < count && nearness(0, target) == nearest) {
        // Unvisited actions differ in their Gumbel numbers and logits alone.
        FOR_EACH_GROUP(g) {
            int at = g * LANES + lane;
            marked[g] = at >= opened && at < count;
        }
        int fresh = best_of(marked, draw, node, lane, &other, &second);
        other = other + bonus.untried > MIN_SCORE ? other + bonus.untried : MIN_SCORE;
        if (place < 0 || other > best || (other == best && second < action)) place = fresh;
    }
    // No place is best if scores are NaN; `has_invalid_output` is set then, and the engine repeats the search.
    return SHUFFLE(place < 0 ? 0 : place, 0);
}
