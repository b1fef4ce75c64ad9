// What all steps work on, as `layout.py` lays it out.

#include "numbers.h"

#define BY_NODE 0
#define BY_TREE 1

// What all trees share.
typedef struct {
    int nodes, actions, players;
    int normalize, rescale, mixed, has_discount;
    int fpu_parent, reward_type, value_type, logits_type;
    // Of what a network sees: the pattern of a 1, how many bits a number has, and how far apart planes, rows and columns are.
    int discount_type, one, bits, plane_step;
    int row_step, column_step, rows;
    double discount, value_scale, maxvisit_init, fpu;
} Rules;

// A node's whole numbers.
typedef struct {
    int to_play, count, opened, unused;
} Header;

// All arrays; those of edges are [trees, nodes, actions], those of nodes [trees, nodes].
typedef struct {
    Rules rules;
    // Roots, as the engine gave them: [trees, ...].
    const int *root_count;
    const int *root_to_play;
    const short *root_actions;
    const float *root_priors;
    const double *root_raw;
    const bits64 *keys;
    const bits64 *begun;
    const bits64 *root_boards;
    const word *slots;
    const double *draws;
    const int *considered;
    const double *weights;
    // The tree of each row: those that want more simulations come first.
    const int *order;
    // What a network or a model says of each row; numbers of the types above.
    const void *reward;
    const void *value;
    const void *own_discount;
    const void *logits;
    // The trees.
    Header *headers;
    double *raw;
    double *rewards;
    double *discounts;
    double *sums;
    int *visits;
    float *priors;
    short *actions;
    short *children;
    double *bounds;
    int *path;
    int *depth;
    // Simulations done, -1 before the root is planted; nodes made beside the root; whether a question was asked, and how many were.
    int *done;
    int *made;
    int *asked;
    int *rows;
    int *unsound;
    // The stones of the player to move and of the other, of each node.
    bits64 *boards;
    // What a model is asked next, row by row.
    word *parents;
    word *chosen;
    word *targets;
    // What a network sees next, row by row.
    void *observations;
} Trees;
