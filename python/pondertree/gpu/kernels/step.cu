// Trees that grow where their network or learned model computes: the next question of every tree in one launch.
//
// This is the hot part of the engine for such trees, and nothing else: the backup of the last answer (`backup.rs`, `latent.rs`) and
// the way down to the next leaf (`select.rs`, `score/`, `halving.rs`), with the rules of Connect 4 where that is the game
// (`games/connect_four.rs`). Numbers are added in the engine's order and in its precision, and ties fall as there, so that both grow
// the same trees. What the roots are, the engine says; what was found, it is told.
//
// A warp has a tree (`lanes.h`).
//
// Defined by who compiles it: PLACES, how many actions there are; GROUPS, how many places a lane has; GUMBEL, 1 or 0; CONNECT_FOUR,
// 1, or 0 for a learned model; PATIENCE, how many simulations without a question a step has at most; WARPS, how many a block of a GPU
// has.

#include "lanes.h"
#include "layout.h"
#include "random.h"
#include "node.h"
#if GUMBEL
#include "gumbel.h"
#else
#include "puct.h"
#endif
#include "backup.h"
#if CONNECT_FOUR
#include "connect_four.h"
#else
#include "model.h"
#endif

// The root as the engine gave it.
HERE void plant(const Trees *t, word tree, int lane) {
    int actions = t->rules.actions;
    word root = tree * t->rules.nodes, first = root * actions;
    for (int place = lane; place < actions; place += LANES) {
        write_edge(t, first + place, t->root_actions[tree * actions + place], t->root_priors[tree * actions + place]);
    }
    if (lane == 0) {
        Header header = {t->root_to_play[tree], t->root_count[tree], 0, 0};
        t->headers[root] = header;
        t->raw[root] = t->root_raw[tree];
        t->bounds[2 * tree] = INFINITE;
        t->bounds[2 * tree + 1] = -INFINITE;
#if CONNECT_FOUR
        t->boards[2 * root] = t->root_boards[2 * tree];
        t->boards[2 * root + 1] = t->root_boards[2 * tree + 1];
#else
        t->rewards[root] = 0.0;
        t->discounts[root] = 1.0;
#endif
    }
}

// Simulations until one asks a question: down to a move never tried, which is opened. An end of the game needs no answer. A tree that
// has found a win would go there over and over, and all others would wait for it: it goes on in the next step.
HERE int search(const Trees *t, word tree, word row, int *simulations, int *nodes, int lane) {
    word root = tree * t->rules.nodes;
    int done = *simulations, made = *nodes, asks = 0;
    for (int tries = 0; !asks && tries < PATIENCE && done < t->rules.nodes - 1; ++tries) {
        // Purpose 1: ties of a selection.
        bits64 random = fold(fold(t->keys[tree], t->begun[tree] + (bits64)done), 1);
        int node = 0, visits = 1 + done, goes_on = 1;
        for (int depth = 0; goes_on; ++depth) {
            Node it = load(t, root + node, lane);
            if (it.header.count == 0) {
                MEET();
                back_up(t, tree, depth, node, it.header.to_play, 0.0, 1.0, it.raw, lane);
                goes_on = 0;
                continue;
            }
#if GUMBEL
            int place = depth == 0 ? choose_first(t, tree, &it, done, lane) : choose(t, tree, &it, visits, lane, &random);
#else
            int place = choose(t, tree, &it, visits, lane, &random);
#endif
            word first = (root + node) * t->rules.actions;
            int opened = it.header.opened;
            if (place < opened) {
                if (lane == 0) t->path[root + depth] = node * 512 + place;
                visits = at_place(it.n, place);
                node = at_place(it.child, place);
                continue;
            }
            int action = at_place(it.action, place), other = at_place(it.action, opened);
            float prior = prior_at(it.prior, place), other_prior = prior_at(it.prior, opened);
            made += 1;
            if (lane == 0) {
                t->path[root + depth] = node * 512 + opened;
                t->actions[first + place] = (short)other;
                t->priors[first + place] = other_prior;
                t->actions[first + opened] = (short)action;
                t->priors[first + opened] = prior;
                t->children[first + opened] = (short)made;
                t->headers[root + node].opened = opened + 1;
                t->depth[tree] = depth + 1;
            }
            asks = arrive(t, tree, row, node, made, action, it.header.to_play, lane);
            MEET();
            if (!asks) back_up(t, tree, depth + 1, made, 1 - it.header.to_play, 0.0, 1.0, t->raw[root + made], lane);
            goes_on = 0;
        }
        MEET();
        done += !asks;
    }
    *simulations = done;
    *nodes = made;
    return asks;
}

// One step of the tree of a row: the answer to the last question, then the next question, if one is to be asked.
HERE void step_row(const Trees *t, word row, int lane, int goes_on) {
    word tree = t->order[row];
    int done = t->done[tree], made = t->made[tree], asked = t->asked[tree];
    if (done < 0) {
        plant(t, tree, lane);
        done = made = 0;
    } else if (asked) {
        apply(t, tree, row, made, lane);
        done += 1;
    }
    MEET();
    asked = goes_on ? search(t, tree, row, &done, &made, lane) : 0;
    MEET();
    if (lane == 0) {
        t->done[tree] = done;
        t->made[tree] = made;
        t->asked[tree] = asked;
        t->rows[tree] += asked;
    }
}

#ifdef __CUDACC_RTC__
extern "C" __global__ void __launch_bounds__(32 * WARPS) step(const __grid_constant__ Trees t, int goes_on) {
    word row = (word)(blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES);
    if (row < t.rules.rows) step_row(&t, row, threadIdx.x % LANES, goes_on);
}
#else
void step(const Trees *t, int goes_on) {
    for (word row = 0; row < t->rules.rows; ++row) step_row(t, row, 0, goes_on);
}
#endif
