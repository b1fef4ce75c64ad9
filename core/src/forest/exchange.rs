//! Batches of a compiled game for a network that computes while the engine goes on: the trees of a group write their questions
//! into lines that the network reads, and read its answers where it wrote them. While one group waits, another is searched.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{piece_size, Forest};
use crate::abreast::each_abreast;
use crate::crew;
use crate::error::Error;
use crate::game::Game;
use crate::knowledge::Classical;
use crate::parts::Parts;
use crate::policy::{priors, PolicyKind};
use crate::search::Walker;
use crate::tree::Tree;
use crate::world::{Compiled, World};

/// How far a value may lie outside -1 to 1, because networks round; it is clipped.
const TOLERANCE: f32 = 1e-3;

/// Where the parts of a question lie in its line of 64-bit words: bit planes, then scalars (two to a word, float32), then legal
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

/// What a network answered: for each row a number for every place of a legal action, then the value for the player to move.
#[derive(Clone, Copy, Debug)]
pub struct Answers<'a> {
    /// Row after row.
    pub numbers: &'a [f32],
    /// What the policy's are.
    pub kind: PolicyKind,
}

/// Where the time of exchanges went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Looking at answers before they are believed.
    pub checking: Duration,
    /// Backing values up, going down again, and giving new leaves their moves.
    pub growing: Duration,
    /// Writing questions.
    pub writing: Duration,
}

/// The batch of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Rows to be answered.
    pub rows: usize,
    /// Whether it is under way, if only with ends, which nobody need answer.
    pub open: bool,
}

/// Trees that are asked about together.
#[derive(Clone, Debug, Default)]
pub struct Group {
    pub(super) trees: Range<usize>,
    /// How many rows each tree has in the batch under way.
    pub(super) rows: Vec<u32>,
    /// How many legal actions each row has.
    legal: Vec<u16>,
    /// The same of the batch that is being gathered.
    next_legal: Vec<u16>,
}

impl<W: World> Forest<W> {
    /// Parts the trees into groups of about the same size, at most `most` trees each: how many trees each has.
    pub fn form_groups(&mut self, most: usize) -> Vec<usize> {
        let trees = self.trees.len();
        let count = trees.div_ceil(most.max(1)).max(1);
        let bounds = |group: usize| trees * group / count;
        self.groups = (0..count).map(|group| Group { trees: bounds(group)..bounds(group + 1), ..Group::default() }).collect();
        self.groups.iter().map(|group| group.trees.len()).collect()
    }
}

impl<G: Game + Classical> Forest<Compiled<G>> {
    /// Gives group `index` the answers to its batch, if they are given, and gathers the next into `questions`, if those are.
    /// None if the answers have something wrong or unusual in them: then nothing has changed.
    ///
    /// # Errors
    /// `Error::Usage` if there is no such group, or the answers or questions do not have room for its rows.
    pub fn exchange(&mut self, index: usize, answers: Option<Answers<'_>>, questions: Option<&mut [u64]>) -> Result<Option<Asked>, Error> {
        let range = self.group_or_all(Some(index))?;
        let line = Line::of::<G>();
        let size = piece_size(range.len(), self.threads);
        let Self { parts, trees, groups, threads, .. } = self;
        let (parts, threads, group) = (&*parts, *threads, &mut groups[index]);
        let trees = &mut trees[range];
        let room = trees.len() * parts.in_flight as usize;
        if questions.as_ref().is_some_and(|questions| questions.len() < room * line.words()) {
            return Err(Error::Usage(format!("questions has no room for {room} rows")));
        }
        let columns = line.legal + 1;
        let begun = Instant::now();
        if let Some(answers) = answers {
            if answers.numbers.len() < group.legal.len() * columns {
                return Err(Error::Usage(format!("answers has no room for {} rows", group.legal.len())));
            }
            if !are_usual(answers, &group.legal, columns, threads) {
                return Ok(None);
            }
        }
        let checked = Instant::now();
        // Before the first batch every tree has one row: its root.
        group.rows.resize(trees.len(), 1);
        let expected: Vec<Range<usize>> = pieces_of(&group.rows, size);
        let (gathers, open, as_expected) = (questions.is_some(), AtomicBool::new(false), AtomicBool::new(true));
        let mut questions = questions;
        group.next_legal.resize(room.max(trees.len()), 0);
        {
            let lines = split_lines(questions.as_deref_mut().unwrap_or_default(), &mut group.next_legal, &expected, line.words());
            let pieces: Vec<_> = trees.chunks_mut(size).zip(group.rows.chunks_mut(size)).zip(expected).zip(lines).collect();
            let legal = &group.legal;
            crew::together(threads, pieces.into_iter(), |(((trees, counts), rows), (lines, next_legal))| {
                let mut reader = answers.map(|answers| Reader {
                    numbers: &answers.numbers[rows.start * columns..rows.end * columns],
                    legal: &legal[rows],
                    kind: answers.kind,
                    columns,
                    values: Vec::new(),
                    priors: Vec::new(),
                });
                let mut writer = Writer::new(line, lines, next_legal);
                let told = counts.to_vec();
                let (mut usual, mut under_way) = (true, false);
                let tell = |place: usize, tree: &mut Tree, walker: &mut Walker<Compiled<G>>| {
                    let rows = told[place] as usize;
                    if let Some(reader) = &mut reader {
                        reader.tell(tree, walker, parts, rows);
                    }
                };
                each_abreast(trees, parts, gathers, tell, |place, tree, walker| {
                    let waiting = walker.pending.iter().filter(|leaf| leaf.value.is_none());
                    let rows = if gathers { waiting.count() as u32 } else { 0 };
                    under_way |= walker.has_batch();
                    // Nearly always as many as the last time, so that they can be written while they are at hand.
                    let count = &mut counts[place];
                    usual &= rows == *count;
                    *count = rows;
                    if gathers && usual {
                        writer.write(tree, walker);
                    }
                });
                if under_way {
                    open.store(true, Ordering::Relaxed);
                }
                if !usual {
                    as_expected.store(false, Ordering::Relaxed);
                }
            });
        }
        let gathered = Instant::now();
        let rows = group.rows.iter().sum::<u32>() as usize;
        if let Some(questions) = questions.filter(|_| !as_expected.into_inner()) {
            let places = pieces_of(&group.rows, size);
            let lines = split_lines(questions, &mut group.next_legal, &places, line.words());
            let pieces: Vec<_> = trees.chunks(size).zip(lines).collect();
            crew::together(threads, pieces.into_iter(), |(trees, (lines, legal))| {
                let mut writer = Writer::new(line, lines, legal);
                trees.iter().for_each(|search| writer.write(search.tree(), &search.walker));
            });
        }
        std::mem::swap(&mut group.legal, &mut group.next_legal);
        group.legal.truncate(if gathers { rows } else { 0 });
        self.spent.checking += checked - begun;
        self.spent.growing += gathered - checked;
        self.spent.writing += gathered.elapsed();
        Ok(Some(Asked { rows, open: open.into_inner() }))
    }
}

/// Whether all numbers are what they should be, which nearly always they are.
fn are_usual(answers: Answers<'_>, legal: &[u16], columns: usize, threads: usize) -> bool {
    let wrong = AtomicBool::new(false);
    // Looking is quick: many rows at a time, or it costs more to hand them over.
    let size = legal.len().div_ceil(threads).max(512);
    crew::together(threads, answers.numbers.chunks(size * columns).zip(legal.chunks(size)), |(numbers, legal)| {
        let mut broken = false;
        for (row, &legal) in numbers.chunks_exact(columns).zip(legal) {
            let policy = &row[..usize::from(legal)];
            // One pass without a branch for each number.
            let (mut unusual, mut possible) = (false, false);
            match answers.kind {
                PolicyKind::Logits => {
                    for &logit in policy {
                        unusual |= logit.is_nan() | (logit == f32::INFINITY);
                        possible |= logit > f32::NEG_INFINITY;
                    }
                }
                PolicyKind::Probabilities => {
                    for &p in policy {
                        unusual |= !(0.0..f32::INFINITY).contains(&p);
                    }
                    possible = true;
                }
            }
            let value = row[columns - 1];
            broken |= unusual | !possible | value.is_nan() | (value.abs() > 1.0 + TOLERANCE);
        }
        if broken {
            wrong.store(true, Ordering::Relaxed);
        }
    });
    !wrong.into_inner()
}

/// Reads the answers of some trees, one tree after another.
struct Reader<'a> {
    numbers: &'a [f32],
    legal: &'a [u16],
    kind: PolicyKind,
    columns: usize,
    values: Vec<f64>,
    priors: Vec<f32>,
}

impl Reader<'_> {
    /// Tells a tree what was answered to its `rows` rows.
    fn tell<G: Game + Classical>(&mut self, tree: &mut Tree, walker: &mut Walker<Compiled<G>>, parts: &Parts, rows: usize) {
        if !walker.has_batch() {
            return;
        }
        let (own, others) = self.numbers.split_at(rows * self.columns);
        let (legal, other_legal) = self.legal.split_at(rows);
        (self.numbers, self.legal) = (others, other_legal);
        self.values.clear();
        self.priors.clear();
        let waiting = walker.pending.iter().filter(|leaf| leaf.value.is_none());
        for ((row, &legal), leaf) in own.chunks_exact(self.columns).zip(legal).zip(waiting) {
            let value = f64::from(row[self.columns - 1]).clamp(-1.0, 1.0);
            let value = if leaf.state.to_play() == 0 { value } else { -value };
            self.values.extend([value, -value]);
            let (legal, begun) = (usize::from(legal), self.priors.len());
            self.priors.resize(begun + legal, 0.0);
            // What could be wrong was looked for before anything was changed.
            let _ = priors(row[..legal].iter().copied(), self.kind, &mut self.priors[begun..]);
        }
        walker.apply(tree, parts, &self.values, &self.priors);
    }
}

/// Which rows each piece of `size` trees has.
pub(super) fn pieces_of(rows: &[u32], size: usize) -> Vec<Range<usize>> {
    let mut at = 0;
    let range = |rows: &[u32]| {
        let from = at;
        at += rows.iter().sum::<u32>() as usize;
        from..at
    };
    rows.chunks(size).map(range).collect()
}

/// The lines, and the counts of legal actions, that belong to each of `places`; none where there are no lines.
fn split_lines<'a>(
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

/// Writes questions, one line after another.
struct Writer<'a> {
    line: Line,
    lines: std::slice::ChunksExactMut<'a, u64>,
    legal: std::slice::IterMut<'a, u16>,
    scalars: Vec<f32>,
}

impl<'a> Writer<'a> {
    fn new(line: Line, lines: &'a mut [u64], legal: &'a mut [u16]) -> Self {
        Self { line, lines: lines.chunks_exact_mut(line.words()), legal: legal.iter_mut(), scalars: vec![0.0; line.scalars] }
    }

    /// Writes a line for every waiting leaf of a tree, and how many legal actions it has.
    fn write<G: Game + Classical>(&mut self, tree: &Tree, walker: &Walker<Compiled<G>>) {
        for leaf in walker.pending.iter().filter(|leaf| leaf.value.is_none()) {
            let (Some(words), Some(count), Some(node)) = (self.lines.next(), self.legal.next(), leaf.node) else { continue };
            let (planes, rest) = words.split_at_mut(self.line.planes);
            leaf.state.pack_observation(planes, &mut self.scalars);
            let (scalar_words, legal_words) = rest.split_at_mut(self.line.scalars.div_ceil(2));
            for (word, pair) in scalar_words.iter_mut().zip(self.scalars.chunks(2)) {
                *word = pair.iter().rev().fold(0, |word, scalar| word << 32 | u64::from(scalar.to_bits()));
            }
            let actions = tree.edges(tree.node(node)).actions;
            *count = actions.len() as u16;
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
    }
}
