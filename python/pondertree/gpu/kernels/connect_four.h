// Connect 4 (`games/connect_four.rs`): positions are boards, and a network is asked about them.

// A column takes seven bits, lowest cell first; the seventh stays empty.
#define BOTTOM 0x0000040810204081ULL
#define TOP (BOTTOM << 5)
#define BOARD ((TOP << 1) - BOTTOM)
#define CELLS 42

HERE int has_line(bits64 stones) {
    bits64 lines = 0;
    const int steps[4] = {1, 6, 7, 8};
    UNROLLED for (int i = 0; i < 4; ++i) {
        bits64 pairs = stones & (stones >> steps[i]);
        lines |= pairs & (pairs >> (2 * steps[i]));
    }
    return lines != 0;
}

// Writes a cell of what the network sees.
HERE void show(const Trees *t, word row, int plane, int cell, int is_set) {
    const Rules *rules = &t->rules;
    word at = row * 3 * CELLS + plane * rules->plane_step + cell / 7 * rules->row_step + cell % 7 * rules->column_step;
    unsigned shown = is_set ? (unsigned)rules->one : 0u;
    if (rules->bits == 16) ((unsigned short *)t->observations)[at] = (unsigned short)shown;
    else ((unsigned *)t->observations)[at] = shown;
}

// The network's answer to the last question.
HERE void apply(const Trees *t, word tree, word row, int leaf, int lane) {
    const Rules *rules = &t->rules;
    word node = tree * rules->nodes + leaf, first = node * rules->actions;
    Header header = t->headers[node];
    double logits[GROUPS], value = number(t->value, row, rules->value_type);
    float priors[GROUPS];
    EACH(g) {
        int place = g * LANES + lane, there = place < header.count;
        logits[g] = there ? number(t->logits, row * rules->actions + t->actions[first + place], rules->logits_type) : 0.0;
    }
    int sound = softmax(logits, header.count, lane, priors);
    EACH(g) if (g * LANES + lane < header.count) t->priors[first + g * LANES + lane] = priors[g];
    // Networks round: a value may lie a little outside.
    if (!(value >= -1.001f && value <= 1.001f)) sound = 0;
    value = value > 1.0 ? 1.0 : value < -1.0 ? -1.0 : value;
    if (lane == 0) {
        t->raw[node] = value;
        if (!sound) *t->unsound = 1;
    }
    back_up(t, tree, t->depth[tree], leaf, header.to_play, 0.0, 1.0, value, lane);
}

// Plays `action` at node `parent`, to node `child`: 1 if the game goes on, and the network is asked about the position.
HERE int arrive(const Trees *t, word tree, word row, int parent, int child, int action, int turn, int lane) {
    const Rules *rules = &t->rules;
    word root = tree * rules->nodes, node = root + child, first = node * rules->actions;
    bits64 own = t->boards[2 * (root + parent)], other = t->boards[2 * (root + parent) + 1];
    bits64 cell = (((own | other) + BOTTOM) & BOARD) & (0x7FULL << (7 * action));
    bits64 moved = own | cell, filled = moved | other;
    int won = has_line(moved), over = won || filled == BOARD, count = 0;
    for (int column = lane; !over && column - lane < 7; column += LANES) {
        int open = column < 7 && !(filled >> (7 * column + 5) & 1);
        unsigned bits = BALLOT(open);
        int place = count + COUNT_BITS(bits & ((1u << lane) - 1u));
        if (open) write_edge(t, first + place, column, 0.0f);
        count += COUNT_BITS(bits);
    }
    if (lane == 0) {
        Header header = {1 - turn, count, 0, 0};
        t->headers[node] = header;
        t->raw[node] = won ? -1.0 : 0.0;
        t->boards[2 * node] = other;
        t->boards[2 * node + 1] = moved;
    }
    if (over) return 0;
    // Rows from the top: stones of the player to move, of the other, and whether it is player 0's turn.
    for (int cell = lane; cell < CELLS; cell += LANES) {
        int bit = cell % 7 * 7 + 5 - cell / 7;
        show(t, row, 0, cell, (int)(other >> bit & 1));
        show(t, row, 1, cell, (int)(moved >> bit & 1));
        show(t, row, 2, cell, turn == 1);
    }
    return 1;
}
