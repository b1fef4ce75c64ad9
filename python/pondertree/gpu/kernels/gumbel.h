// Action selection of Gumbel AlphaZero and MuZero (`search/score/gumbel.rs`).

#define MIN_SPAN 1e-8
#define MIN_PRIOR 1.17549435082228750797e-38
#define MIN_SCORE -1e9

typedef struct {
    double weight, low, span, untried;
} Bonus;

DEVICE double bonus_of(const Bonus *bonus, double q) { return bonus->weight * ((q - bonus->low) / bonus->span); }
DEVICE double at_least(float prior) { return (double)prior > MIN_PRIOR ? (double)prior : MIN_PRIOR; }

// Completed Q-values: `q` receives the means of opened edges, the result the transformation of all.
DEVICE Bonus complete(const Trees *t, const Node *it, int lane, double *q) {
    const Rules *rules = &t->rules;
    int opened = it->header.opened, total = 0, most = 0;
    double prior[GROUPS], low = INFINITE, high = -INFINITE;
    EACH(g) {
        int tried = g * LANES + lane < opened;
        q[g] = tried ? it->sum[g] / (double)it->n[g] : 0.0;
        prior[g] = tried ? at_least(it->prior[g]) : 0.0;
        total += it->n[g];
        most = it->n[g] > most ? it->n[g] : most;
        if (tried) {
            low = q[g] < low ? q[g] : low;
            high = q[g] > high ? q[g] : high;
        }
    }
    // Broadcast, so that control flow stays uniform across the warp.
    total = SHUFFLE(sum_of(total), 0);
    most = most_of(most);
    low = lowest_of(low);
    high = highest_of(high);
    double completing = it->raw;
    if (rules->mixed && total > 0) {
        double priors = ordered_sum(prior, 0, opened), share[GROUPS];
        EACH(g) share[g] = prior[g] * q[g] / priors;
        double weighted = ordered_sum(share, 0, opened);
        completing = (it->raw + (double)total * weighted) / ((double)total + 1.0);
    }
    if (opened < rules->actions) {
        low = completing < low ? completing : low;
        high = completing > high ? completing : high;
    }
    Bonus bonus = {(rules->maxvisit_init + (double)most) * rules->value_scale, 0.0, 1.0, 0.0};
    if (rules->rescale) {
        bonus.low = low;
        bonus.span = high - low > MIN_SPAN ? high - low : MIN_SPAN;
    }
    bonus.untried = bonus_of(&bonus, completing);
    return bonus;
}

// The marked place with the highest score, ties by lowest action; -1 if there is none. Writes its score and action.
DEVICE int best_of(const int *marked, const double *score, const Node *it, int lane, double *best, int *action) {
    double highest = -INFINITE;
    EACH(g) if (marked[g] && score[g] > highest) highest = score[g];
    highest = highest_of(highest);
    int first = 0x7fffffff;
    EACH(g) if (marked[g] && score[g] == highest) {
        int named = it->action[g] * 512 + g * LANES + lane;
        first = named < first ? named : first;
    }
    first = least_of(first);
    *best = highest;
    *action = first / 512;
    return first == 0x7fffffff ? -1 : first % 512;
}

// Interior nodes: the edge whose visits lag most behind the improved policy.
DEVICE int choose(const Trees *t, word tree, const Node *it, int visits, int lane, bits64 *random) {
    int opened = it->header.opened, count = it->header.count, total_visits = 0, marked[GROUPS];
    double q[GROUPS], prior[GROUPS], score[GROUPS];
    Bonus bonus = complete(t, it, lane, q);
    EACH(g) {
        prior[g] = (double)it->prior[g];
        total_visits += it->n[g];
    }
    double rest = ordered_sum(prior, opened, count);
    double most = rest > 0.0 ? bonus.untried : -INFINITE, own = -INFINITE;
    EACH(g) if (g * LANES + lane < opened) {
        score[g] = bonus_of(&bonus, q[g]);
        own = prior[g] > 0.0 && score[g] > own ? score[g] : own;
    }
    own = highest_of(own);
    most = own > most ? own : most;
    EACH(g) score[g] = g * LANES + lane < opened && prior[g] > 0.0 ? prior[g] * exp(score[g] - most) : 0.0;
    double untried = rest > 0.0 ? exp(bonus.untried - most) : 0.0;
    double total = ordered_sum(score, 0, opened) + rest * untried;
    double all = 1.0 + (double)sum_of(total_visits), best, other;
    EACH(g) {
        marked[g] = g * LANES + lane < opened;
        score[g] = score[g] / total - (double)it->n[g] / all;
    }
    int action, second;
    int place = best_of(marked, score, it, lane, &best, &action);
    if (opened < count) {
        EACH(g) {
            int at = g * LANES + lane;
            marked[g] = at >= opened && at < count;
        }
        int fresh = best_of(marked, prior, it, lane, &other, &second);
        other = other * untried / total;
        if (place < 0 || other > best || (other == best && second < action)) place = fresh;
    }
    // No place is best if scores are NaN; `unsound` is set then, and the engine repeats the search.
    return SHUFFLE(place < 0 ? 0 : place, 0);
}

// Closeness of a visit count to the scheduled one, greater where closer (`search/sequential_halving.rs`).
DEVICE int nearness(int visits, int wanted) {
    if (visits == wanted) return 0x7fffffff;
    return visits < wanted ? visits - wanted + (1 << 30) : wanted - visits;
}

// The root: sequential halving.
DEVICE int choose_first(const Trees *t, word tree, const Node *it, int done, int lane) {
    int opened = it->header.opened, count = it->header.count;
    int wanted = t->considered[tree * (t->rules.nodes - 1) + done];
    int nearest = opened < count ? nearness(0, wanted) : -0x7fffffff, marked[GROUPS];
    double q[GROUPS], score[GROUPS], draw[GROUPS];
    EACH(g) {
        int place = g * LANES + lane;
        draw[g] = place < count ? t->draws[tree * t->rules.actions + it->action[g]] : 0.0;
        if (place < opened && nearness(it->n[g], wanted) > nearest) nearest = nearness(it->n[g], wanted);
    }
    nearest = SHUFFLE(most_of(nearest), 0);
    Bonus bonus = complete(t, it, lane, q);
    EACH(g) {
        double sum = draw[g] + bonus_of(&bonus, q[g]);
        score[g] = sum > MIN_SCORE ? sum : MIN_SCORE;
        marked[g] = g * LANES + lane < opened && nearness(it->n[g], wanted) == nearest;
    }
    double best, other;
    int action, second;
    int place = best_of(marked, score, it, lane, &best, &action);
    if (opened < count && nearness(0, wanted) == nearest) {
        // Unvisited actions differ in their Gumbel numbers and logits alone.
        EACH(g) {
            int at = g * LANES + lane;
            marked[g] = at >= opened && at < count;
        }
        int fresh = best_of(marked, draw, it, lane, &other, &second);
        other = other + bonus.untried > MIN_SCORE ? other + bonus.untried : MIN_SCORE;
        if (place < 0 || other > best || (other == best && second < action)) place = fresh;
    }
    // No place is best if scores are NaN; `unsound` is set then, and the engine repeats the search.
    return SHUFFLE(place < 0 ? 0 : place, 0);
}
