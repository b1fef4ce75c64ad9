//! Questions of a compiled game as lines of words, written where a network reads them.

use std::ops::Range;

use crate::games::analysis::LeafAnalysis;
use crate::games::{Compiled, Game};
use crate::search::tree_search::SearchState;
use crate::tree::Tree;

/// Where the config of a question lie in its line of 64-bit words: bit planes, then scalars (two to a word, float32), then legal
/// actions (four to a word, 16 bits), the low bits first; what is beyond the last of them is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Bit planes, one to a word.
    pub planes: usize,
    /// Scalars.
    pub scalars: usize,
    /// Places for legal actions.
    pub legal: usize,
}

impl Line {
    /// The line of a game.
    #[must_use]
    pub const fn of<G: Game>() -> Self {
        Self { planes: G::PLANES, scalars: G::SCALARS, legal: G::MAX_LEGAL }
    }

    /// Words in a line.
    #[must_use]
    pub const fn words(self) -> usize {
        self.planes + self.scalars.div_ceil(2) + self.legal.div_ceil(4)
    }
}

/// The lines, and the counts of legal actions, that belong to each of `places`; none where there are no lines.
pub(super) fn split_lines<'a>(
    mut lines: &'a mut [u64],
    mut legal: &'a mut [u16],
    places: &[Range<usize>],
    words: usize,
) -> Vec<(&'a mut [u64], &'a mut [u16])> {
    let there = !lines.is_empty();
    let split = |rows: &Range<usize>| {
        let count = if there { rows.len() } else { 0 };
        let (own_lines, other_lines) = std::mem::take(&mut lines).split_at_mut(count * words);
        let (own_legal, other_legal) = std::mem::take(&mut legal).split_at_mut(count);
        (lines, legal) = (other_lines, other_legal);
        (own_lines, own_legal)
    };
    places.iter().map(split).collect()
}

/// Lines of some trees that have more of them than was expected, and the counts of their legal actions.
#[derive(Debug, Default)]
pub(super) struct Beyond {
    lines: Vec<u64>,
    legal: Vec<u16>,
}

/// Writes questions, one line after another.
pub(super) struct Writer<'a> {
    line: Line,
    lines: std::slice::ChunksExactMut<'a, u64>,
    legal: std::slice::IterMut<'a, u16>,
    beyond: &'a mut Beyond,
    scalars: Vec<f32>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(line: Line, lines: &'a mut [u64], legal: &'a mut [u16], beyond: &'a mut Beyond) -> Self {
        let lines = lines.chunks_exact_mut(line.words());
        Self { line, lines, legal: legal.iter_mut(), beyond, scalars: vec![0.0; line.scalars] }
    }

    /// Writes a line for every waiting leaf of a tree, and how many legal actions it has: how many lines.
    pub(super) fn write<G: Game + LeafAnalysis>(&mut self, tree: &Tree, search_state: &SearchState<Compiled<G>>) -> u32 {
        let mut written = 0;
        for leaf in search_state.pending.iter().filter(|leaf| leaf.value.is_none()) {
            let actions: &[u16] = leaf.node.map_or(&[], |node| tree.edges(tree.node(node)).actions);
            written += 1;
            let words = match (self.lines.next(), self.legal.next()) {
                (Some(words), Some(count)) => {
                    *count = actions.len() as u16;
                    words
                }
                _ => {
                    self.beyond.legal.push(actions.len() as u16);
                    let begun = self.beyond.lines.len();
                    self.beyond.lines.resize(begun + self.line.words(), 0);
                    &mut self.beyond.lines[begun..]
                }
            };
            let (planes, rest) = words.split_at_mut(self.line.planes);
            leaf.state.pack_observation(planes, &mut self.scalars);
            let (scalar_words, legal_words) = rest.split_at_mut(self.line.scalars.div_ceil(2));
            for (word, pair) in scalar_words.iter_mut().zip(self.scalars.chunks(2)) {
                *word = pair.iter().rev().fold(0, |word, scalar| word << 32 | u64::from(scalar.to_bits()));
            }
            // Devices look at all places.
            legal_words.fill(0);
            if cfg!(target_endian = "little") {
                bytemuck::cast_slice_mut::<u64, u16>(legal_words)[..actions.len()].copy_from_slice(actions);
            } else {
                for (word, four) in legal_words.iter_mut().zip(actions.chunks(4)) {
                    *word = four.iter().rev().fold(0, |word, &action| word << 16 | u64::from(action));
                }
            }
        }
        written
    }
}

/// Moves lines, and their counts, that were written from where each of `expected` begins to `places`, where they belong now that it is
/// known how many there are of each; those `beyond` come behind the others of their place.
pub(super) fn close_gaps(
    lines: &mut [u64],
    legal: &mut [u16],
    words: usize,
    expected: &[Range<usize>],
    places: &[Range<usize>],
    beyond: &[Beyond],
) {
    let mut shift = |from: &Range<usize>, to: &Range<usize>| {
        let count = from.len().min(to.len());
        lines.copy_within(from.start * words..(from.start + count) * words, to.start * words);
        legal.copy_within(from.start..from.start + count, to.start);
    };
    // Both are in the same order, so that what moves down, the lowest first, and what moves up, the highest first, never covers
    // what is still to be moved.
    let pairs = || expected.iter().zip(places);
    pairs().filter(|(from, to)| to.start < from.start).for_each(|(from, to)| shift(from, to));
    pairs().rev().filter(|(from, to)| to.start > from.start).for_each(|(from, to)| shift(from, to));
    for ((from, to), beyond) in pairs().zip(beyond).filter(|(_, beyond)| !beyond.legal.is_empty()) {
        let first = to.start + from.len();
        lines[first * words..to.end * words].copy_from_slice(&beyond.lines);
        legal[first..to.end].copy_from_slice(&beyond.legal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ranges(counts: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
        let mut at = 0;
        let range = |count| {
            at += count;
            at - count..at
        };
        counts.map(range).collect()
    }

    proptest! {
        #[test]
        fn lines_stand_one_after_another_however_many_there_are(
            counts in prop::collection::vec((0usize..6, 0usize..6), 1..30),
            words in 1usize..4,
        ) {
            let expected = ranges(counts.iter().map(|&(expected, _)| expected));
            let places = ranges(counts.iter().map(|&(_, written)| written));
            let room = expected.iter().chain(&places).map(|range| range.end).max().unwrap_or(0);
            let (mut lines, mut legal) = (vec![u64::MAX; room * words], vec![u16::MAX; room]);
            let mut beyond: Vec<Beyond> = counts.iter().map(|_| Beyond::default()).collect();
            // Every line has the number that its row is to have.
            for ((from, to), beyond) in expected.iter().zip(&places).zip(&mut beyond) {
                for (offset, row) in to.clone().enumerate() {
                    let line = vec![row as u64; words];
                    if offset < from.len() {
                        let at = from.start + offset;
                        lines[at * words..(at + 1) * words].copy_from_slice(&line);
                        legal[at] = row as u16;
                    } else {
                        beyond.lines.extend(line);
                        beyond.legal.push(row as u16);
                    }
                }
            }
            close_gaps(&mut lines, &mut legal, words, &expected, &places, &beyond);
            let rows = places.last().map_or(0, |last| last.end);
            for row in 0..rows {
                prop_assert!(lines[row * words..(row + 1) * words].iter().all(|&word| word == row as u64));
                prop_assert_eq!(usize::from(legal[row]), row);
            }
        }
    }
}
