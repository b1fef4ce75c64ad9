// GPU-resident tree search: one launch advances every tree to its next network request.
//
// A step applies the last output (backup) and descends to the next leaf (selection, expansion), with the rules of Connect 4 if that
// is the game. Sums are formed in the engine's order and precision and ties are broken as there, so that both grow the same trees.
// The engine exports the roots and imports the results.
//
// A warp has a tree (`warp.h`).
//
// Compile-time definitions: PLACES, the number of actions; GROUPS, places per lane; GUMBEL, 1 or 0; CONNECT_FOUR, 1, or 0 for a
// learned model; MAX_TERMINAL_DESCENTS_PER_STEP, the most simulations of a step that end without a request; WARPS per block.

#include "warp.h"
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
#include "latent.h"
#endif

// Writes the root as the engine exported it.
DEVICE void plant(const Trees *t, word tree, int lane) {
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

// Runs simulations until one makes a request: each descends to an unvisited edge and opens it. Terminal leaves need no network. Their
// number is limited: a tree that has found a win would revisit it for all its simulations, while the other trees wait.
DEVICE int search(const Trees *t, word tree, word row, int *simulations, int *nodes, int lane) {
    word root = tree * t->rules.nodes;
    int done = *simulations, made = *nodes, is_request = 0;
    for (int tries = 0; !is_request && tries < MAX_TERMINAL_DESCENTS_PER_STEP && done < t->rules.nodes - 1; ++tries) {
        // Purpose 1 of the generator: ties in selection.
        bits64 random = fold(fold(t->keys[tree], t->begun[tree] + (bits64)done), 1);
        int node = 0, visits = 1 + done, descends = 1;
        for (int depth = 0; descends; ++depth) {
            Node it = load(t, root + node, lane);
            if (it.header.count == 0) {
                SYNC_WARP();
                back_up(t, tree, depth, node, it.header.to_play, 0.0, 1.0, it.raw, lane);
                descends = 0;
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
            is_request = expand_edge(t, tree, row, node, made, action, it.header.to_play, lane);
            SYNC_WARP();
            if (!is_request) back_up(t, tree, depth + 1, made, 1 - it.header.to_play, 0.0, 1.0, t->raw[root + made], lane);
            descends = 0;
        }
        SYNC_WARP();
        done += !is_request;
    }
    *simulations = done;
    *nodes = made;
    return is_request;
}

// One step of the tree of a row: applies the pending output, then makes the next request if `wants_request`.
DEVICE void step_row(const Trees *t, word row, int lane, int wants_request) {
    word tree = t->order[row];
    int done = t->done[tree], made = t->made[tree], pending = t->pending[tree];
    if (done < 0) {
        plant(t, tree, lane);
        done = made = 0;
    } else if (pending) {
        apply(t, tree, row, made, lane);
        done += 1;
    }
    SYNC_WARP();
    pending = wants_request ? search(t, tree, row, &done, &made, lane) : 0;
    SYNC_WARP();
    if (lane == 0) {
        t->done[tree] = done;
        t->made[tree] = made;
        t->pending[tree] = pending;
        t->rows[tree] += pending;
    }
}

#ifdef __CUDACC_RTC__
extern "C" __global__ void __launch_bounds__(32 * WARPS) step(const __grid_constant__ Trees t, int wants_request) {
    word row = (word)(blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES);
    if (row < t.rules.rows) step_row(&t, row, threadIdx.x % LANES, wants_request);
}
#else
void step(const Trees *t, int wants_request) {
    for (word row = 0; row < t->rules.rows; ++row) step_row(t, row, 0, wants_request);
}
#endif
