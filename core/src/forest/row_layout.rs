//! Requests of a compiled game as rows of words in the network's input buffer.

use std::ops::Range;

use crate::games::analysis::Analyzed;
use crate::games::{Compiled, Game};
use crate::search::tree_search::SearchState;
use crate::tree::Tree;

/// The layout of a request in 64-bit words: bit planes, scalars (two float32 per word), legal actions (four 16-bit ones per
/// word); low bits first, padded with 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLayout {
    /// Words of the bit planes.
    pub plane_words: usize,
    /// Number of scalars.
    pub scalars: usize,
    /// Capacity of legal actions.
    pub max_legal: usize,
}

impl RowLayout {
    /// Returns the layout for the states of a search that `state` belongs to.
    #[must_use]
    pub fn of<G: Game>(state: &G) -> Self {
        let dimensions = state.dimensions();
        Self { plane_words: dimensions.words(), scalars: dimensions.scalars, max_legal: G::MAX_LEGAL.min(dimensions.num_actions) }
    }

    /// Returns the words per row.
    #[must_use]
    pub const fn words(self) -> usize {
        self.plane_words + self.scalars.div_ceil(2) + self.max_legal.div_ceil(4)
    }
}

/// Splits rows of `width` numbers by `places`; empty slices without rows.
pub(super) fn split_rows<'a, T>(mut rows: &'a mut [T], places: &[Range<usize>], width: usize) -> Vec<&'a mut [T]> {
    let there = !rows.is_empty();
    let split = |place: &Range<usize>| {
        let count = if there { place.len() * width } else { 0 };
        let (own, others) = std::mem::take(&mut rows).split_at_mut(count);
        rows = others;
        own
    };
    places.iter().map(split).collect()
}

/// Rows beyond the expected number, and their numbers of legal actions.
#[derive(Debug, Default)]
pub(super) struct Overflow {
    row_words: Vec<u64>,
    legal: Vec<u16>,
}

/// Writes requests row after row.
pub(super) struct RequestWriter<'a> {
    layout: RowLayout,
    row_words: std::slice::ChunksExactMut<'a, u64>,
    legal: std::slice::IterMut<'a, u16>,
    overflow: &'a mut Overflow,
    scalars: Vec<f32>,
}

impl<'a> RequestWriter<'a> {
    pub(super) fn new(layout: RowLayout, row_words: &'a mut [u64], legal: &'a mut [u16], overflow: &'a mut Overflow) -> Self {
        let row_words = row_words.chunks_exact_mut(layout.words());
        Self { layout, row_words, legal: legal.iter_mut(), overflow, scalars: vec![0.0; layout.scalars] }
    }

    /// Writes a row and its number of legal actions for every waiting leaf of a tree; returns the number of rows.
    pub(super) fn write<G: Analyzed>(&mut self, tree: &Tree, search_state: &SearchState<Compiled<G>>) -> u32 {
        let mut written = 0;
        for leaf in search_state.pending.iter().filter(|leaf| leaf.awaits_value()) {
            let actions: &[u16] = leaf.node.map_or(&[], |node| tree.edges(tree.node(node)).actions);
            written += 1;
            let words = match (self.row_words.next(), self.legal.next()) {
                (Some(words), Some(count)) => {
                    *count = actions.len() as u16;
                    words
                }
                _ => {
                    self.overflow.legal.push(actions.len() as u16);
                    let start = self.overflow.row_words.len();
                    self.overflow.row_words.resize(start + self.layout.words(), 0);
                    &mut self.overflow.row_words[start..]
                }
            };
            let (planes, rest) = words.split_at_mut(self.layout.plane_words);
            leaf.state.pack_observation(planes, &mut self.scalars);
            let (scalar_words, legal_words) = rest.split_at_mut(self.layout.scalars.div_ceil(2));
            for (word, pair) in scalar_words.iter_mut().zip(self.scalars.chunks(2)) {
                *word = pair.iter().rev().fold(0, |word, scalar| word << 32 | u64::from(scalar.to_bits()));
            }
            // The device reads the whole capacity.
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

/// Moves rows and their counts from the beginnings of `expected` to their final `places`; `overflow` rows follow the others of
/// their place.
pub(super) fn close_gaps(
    row_words: &mut [u64],
    legal: &mut [u16],
    words: usize,
    expected: &[Range<usize>],
    places: &[Range<usize>],
    overflow: &[Overflow],
) {
    let mut shift = |from: &Range<usize>, to: &Range<usize>| {
        let count = from.len().min(to.len());
        row_words.copy_within(from.start * words..(from.start + count) * words, to.start * words);
        legal.copy_within(from.start..from.start + count, to.start);
    };
    // Both are in the same order: moving down from the lowest and up from the highest never overwrites rows still to be moved.
    let pairs = || expected.iter().zip(places);
    pairs().filter(|(from, to)| to.start < from.start).for_each(|(from, to)| shift(from, to));
    pairs().rev().filter(|(from, to)| to.start > from.start).for_each(|(from, to)| shift(from, to));
    for ((from, to), overflow) in pairs().zip(overflow).filter(|(_, overflow)| !overflow.legal.is_empty()) {
        let first = to.start + from.len();
        row_words[first * words..to.end * words].copy_from_slice(&overflow.row_words);
        legal[first..to.end].copy_from_slice(&overflow.legal);
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
        fn close_gaps_makes_rows_contiguous(
            counts in prop::collection::vec((0usize..6, 0usize..6), 1..30),
            words in 1usize..4,
        ) {
            let expected = ranges(counts.iter().map(|&(expected, _)| expected));
            let places = ranges(counts.iter().map(|&(_, written)| written));
            let capacity = expected.iter().chain(&places).map(|range| range.end).max().unwrap_or(0);
            let (mut row_words, mut legal) = (vec![u64::MAX; capacity * words], vec![u16::MAX; capacity]);
            let mut overflow: Vec<Overflow> = counts.iter().map(|_| Overflow::default()).collect();
            // Every row holds its index.
            for ((from, to), overflow) in expected.iter().zip(&places).zip(&mut overflow) {
                for (offset, row) in to.clone().enumerate() {
                    let layout = vec![row as u64; words];
                    if offset < from.len() {
                        let at = from.start + offset;
                        row_words[at * words..(at + 1) * words].copy_from_slice(&layout);
                        legal[at] = row as u16;
                    } else {
                        overflow.row_words.extend(layout);
                        overflow.legal.push(row as u16);
                    }
                }
            }
            close_gaps(&mut row_words, &mut legal, words, &expected, &places, &overflow);
            let rows = places.last().map_or(0, |last| last.end);
            for row in 0..rows {
                prop_assert!(row_words[row * words..(row + 1) * words].iter().all(|&word| word == row as u64));
                prop_assert_eq!(usize::from(legal[row]), row);
            }
        }
    }
}
