// GPU-resident tree search: one launch advances every tree to its next network request.
//
// A step applies the last output (backup) and descends to the next leaf (selection, expansion), by the rules of Connect 4 if that is
// the game. Sums are formed in the engine's order and precision and ties are broken as there, so that both grow the same trees.
// The engine exports the roots and imports the results.
//
// One warp per tree (`warp.h`).
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
DEVICE void write_root(const TreeArrays *t, int64 tree, int lane) {
    int actions = t->params.actions;
    int64 root = tree * t->params.nodes, first = root * actions;
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

// Runs simulations until one makes a request: each descends to an unvisited edge and opens it. Terminal leaves need no network; their
// number is limited because a tree that has found a win would revisit it for all its simulations, while the other trees wait.
DEVICE int search(const TreeArrays *t, int64 tree, int64 row, int *simulations, int *nodes_added, int lane) {
    int64 root = tree * t->params.nodes;
    int done = *simulations, added = *nodes_added, is_request = 0;
    for (int tries = 0; !is_request && tries < MAX_TERMINAL_DESCENTS_PER_STEP && done < t->params.nodes - 1; ++tries) {
        uint64 random = fold(fold(t->keys[tree], t->simulation_offset[tree] + (uint64)done), PURPOSE_SELECT);
        int index = 0, visits = 1 + done, descends = 1;
        for (int depth = 0; descends; ++depth) {
            Node node = load(t, root + index, lane);
            if (node.header.count == 0) {
                SYNC_WARP();
                back_up(t, tree, depth, index, node.header.to_play, 0.0, 1.0, node.raw, lane);
                descends = 0;
                continue;
            }
#if GUMBEL
            int place =
                depth == 0 ? select_root_edge(t, tree, &node, done, lane) : select_edge(t, tree, &node, visits, lane, &random);
#else
            int place = select_edge(t, tree, &node, visits, lane, &random);
#endif
            int64 first = (root + index) * t->params.actions;
            int opened = node.header.opened;
            if (place < opened) {
                if (lane == 0) t->path[root + depth] = PATH_ENTRY(index, place);
                visits = at_place(node.n, place);
                index = at_place(node.child, place);
                continue;
            }
            int action = at_place(node.action, place), other = at_place(node.action, opened);
            float prior = prior_at(node.prior, place), other_prior = prior_at(node.prior, opened);
            added += 1;
            if (lane == 0) {
                t->path[root + depth] = PATH_ENTRY(index, opened);
                t->actions[first + place] = (short)other;
                t->priors[first + place] = other_prior;
                t->actions[first + opened] = (short)action;
                t->priors[first + opened] = prior;
                t->children[first + opened] = (short)added;
                t->headers[root + index].opened = opened + 1;
                t->depth[tree] = depth + 1;
            }
            is_request = expand_edge(t, tree, row, index, added, action, node.header.to_play, lane);
            SYNC_WARP();
            if (!is_request) back_up(t, tree, depth + 1, added, 1 - node.header.to_play, 0.0, 1.0, t->raw[root + added], lane);
            descends = 0;
        }
        SYNC_WARP();
        done += !is_request;
    }
    *simulations = done;
    *nodes_added = added;
    return is_request;
}

// One step of the tree of a row: applies the pending output, then makes the next request if `wants_request`.
DEVICE void step_row(const TreeArrays *t, int64 row, int lane, int wants_request) {
    int64 tree = t->row_to_tree[row];
    int done = t->simulations[tree], added = t->nodes_added[tree], pending = t->pending[tree];
    if (done < 0) {
        write_root(t, tree, lane);
        done = added = 0;
    } else if (pending) {
        apply(t, tree, row, added, lane);
        done += 1;
    }
    SYNC_WARP();
    pending = wants_request ? search(t, tree, row, &done, &added, lane) : 0;
    SYNC_WARP();
    if (lane == 0) {
        t->simulations[tree] = done;
        t->nodes_added[tree] = added;
        t->pending[tree] = pending;
        t->rows[tree] += pending;
    }
}

#ifdef __CUDACC_RTC__
extern "C" __global__ void __launch_bounds__(32 * WARPS) step(const __grid_constant__ TreeArrays t, int wants_request) {
    int64 row = (int64)(blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES);
    if (row < t.params.rows) step_row(&t, row, threadIdx.x % LANES, wants_request);
}
#else
void step(const TreeArrays *t, int wants_request) {
    for (int64 row = 0; row < t->params.rows; ++row) step_row(t, row, 0, wants_request);
}
#endif
