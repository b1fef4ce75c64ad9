// Connect 4 (`games/connect_four.rs`): nodes hold bitboards; a network evaluates positions.

// Bitboards: seven bits a column, lowest cell first; the seventh bit is a sentinel.
#define BOTTOM 0x0000040810204081ULL
#define TOP (BOTTOM << 5)
#define BOARD ((TOP << 1) - BOTTOM)
#define CELLS 42

DEVICE int has_line(uint64 stones) {
    uint64 lines = 0;
    const int steps[4] = {1, 6, 7, 8};
    UNROLLED for (int i = 0; i < 4; ++i) {
        uint64 pairs = stones & (stones >> steps[i]);
        lines |= pairs & (pairs >> (2 * steps[i]));
    }
    return lines != 0;
}

// Writes one number of an observation.
DEVICE void write_cell(const TreeArrays *t, int64 row, int plane, int cell, int is_set) {
    const SearchParameters *params = &t->params;
    int64 at = row * 3 * CELLS + plane * params->plane_step + cell / 7 * params->row_step + cell % 7 * params->column_step;
    unsigned written = is_set ? (unsigned)params->one_bits : 0u;
    if (params->bits_per_value == 16) ((unsigned short *)t->observations)[at] = (unsigned short)written;
    else ((unsigned *)t->observations)[at] = written;
}

// Applies the network's output for the pending leaf.
DEVICE void apply(const TreeArrays *t, int64 tree, int64 row, int leaf, int lane) {
    const SearchParameters *params = &t->params;
    int64 node = tree * params->nodes + leaf, first = node * params->actions;
    Header header = t->headers[node];
    double logits[GROUPS], value = number(t->value, row, params->value_type);
    float priors[GROUPS];
    FOR_EACH_GROUP(g) {
        int place = g * LANES + lane, there = place < header.count;
        logits[g] = there ? number(t->logits, row * params->actions + t->actions[first + place], params->logits_type) : 0.0;
    }
    int is_valid = softmax(logits, header.count, lane, priors);
    FOR_EACH_GROUP(g) if (g * LANES + lane < header.count) t->priors[first + g * LANES + lane] = priors[g];
    // Rounding in the network may exceed the range slightly; such values are clipped.
    if (!(value >= -1.001f && value <= 1.001f)) is_valid = 0;
    value = value > 1.0 ? 1.0 : value < -1.0 ? -1.0 : value;
    if (lane == 0) {
        t->raw[node] = value;
        if (!is_valid) *t->has_invalid_output = 1;
    }
    back_up(t, tree, t->depth[tree], leaf, header.to_play, 0.0, 1.0, value, lane);
}

// Plays `action` at `parent` and creates node `child`. Returns 1 if the position needs the network, 0 at the end of a game.
DEVICE int expand_edge(const TreeArrays *t, int64 tree, int64 row, int parent, int child, int action, int to_play, int lane) {
    const SearchParameters *params = &t->params;
    int64 root = tree * params->nodes, node = root + child, first = node * params->actions;
    uint64 own = t->boards[2 * (root + parent)], other = t->boards[2 * (root + parent) + 1];
    uint64 cell = (((own | other) + BOTTOM) & BOARD) & (0x7FULL << (7 * action));
    uint64 moved = own | cell, filled = moved | other;
    int won = has_line(moved), is_end = won || filled == BOARD, count = 0;
    for (int column = lane; !is_end && column - lane < 7; column += LANES) {
        int open = column < 7 && !(filled >> (7 * column + 5) & 1);
        unsigned bits = BALLOT(open);
        int place = count + COUNT_BITS(bits & ((1u << lane) - 1u));
        if (open) write_edge(t, first + place, column, 0.0f);
        count += COUNT_BITS(bits);
    }
    if (lane == 0) {
        Header header = {1 - to_play, count, 0, 0};
        t->headers[node] = header;
        t->raw[node] = won ? -1.0 : 0.0;
        t->boards[2 * node] = other;
        t->boards[2 * node + 1] = moved;
    }
    if (is_end) return 0;
    // Rows from the top. Planes: stones of the player to move, of the other player, and whether player 0 is to move.
    for (int cell = lane; cell < CELLS; cell += LANES) {
        int bit = cell % 7 * 7 + 5 - cell / 7;
        write_cell(t, row, 0, cell, (int)(other >> bit & 1));
        write_cell(t, row, 1, cell, (int)(moved >> bit & 1));
        write_cell(t, row, 2, cell, to_play == 1);
    }
    return 1;
}
