//! Batches of a compiled game for a network that computes while the engine goes on: the trees of a group write their questions
//! into lines that the network reads, and read its answers where it wrote them. While one group waits, another is searched.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{piece_size, Forest};
use crate::crew;
use crate::error::Error;
use crate::game::Game;
use crate::knowledge::Classical;
use crate::look;
use crate::parts::Parts;
use crate::policy::{priors, PolicyKind};
use crate::search::TreeSearch;
use crate::world::Compiled;

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
    rows: Vec<u32>,
    /// How many legal actions each row has.
    legal: Vec<u16>,
}

impl<G: Game + Classical> Forest<Compiled<G>> {
    /// Parts the trees into groups of about the same size, at most `most` trees each: how many trees each has.
    pub fn form_groups(&mut self, most: usize) -> Vec<usize> {
        let trees = self.trees.len();
        let count = trees.div_ceil(most.max(1)).max(1);
        let bounds = |group: usize| trees * group / count;
        self.groups = (0..count).map(|group| Group { trees: bounds(group)..bounds(group + 1), ..Group::default() }).collect();
        self.groups.iter().map(|group| group.trees.len()).collect()
    }

    /// Gives group `index` the answers to its batch, if they are given, and gathers the next into `questions`, if those are.
    /// None if the answers have something wrong or unusual in them: then nothing has changed.
    ///
    /// # Errors
    /// `Error::Usage` if there is no such group, or the answers or questions do not have room for its rows.
    pub fn exchange(&mut self, index: usize, answers: Option<Answers<'_>>, questions: Option<&mut [u64]>) -> Result<Option<Asked>, Error> {
        let range = self.group_or_all(Some(index))?;
        let line = Line::of::<G>();
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
        group.rows.resize(trees.len(), 0);
        let size = piece_size(trees.len(), threads);
        let mut at = 0;
        let answered = group.rows.chunks_mut(size).map(|rows| {
            let from = at;
            at += rows.iter().sum::<u32>() as usize;
            (rows, from..at)
        });
        let pieces: Vec<_> = trees.chunks_mut(size).zip(answered).collect();
        let (gathers, open) = (questions.is_some(), AtomicBool::new(false));
        crew::together(threads, pieces.into_iter(), |(trees, (counts, rows))| {
            let mut reader = answers.map(|answers| Reader::<'_> {
                numbers: &answers.numbers[rows.start * columns..rows.end * columns],
                legal: &group.legal[rows],
                kind: answers.kind,
                columns,
                values: Vec::new(),
                priors: Vec::new(),
            });
            for (tree, count) in trees.iter_mut().zip(counts) {
                if let Some(reader) = &mut reader {
                    reader.tell(tree, parts, *count as usize);
                }
                *count = if gathers { gather(tree, parts) } else { 0 };
                if tree.walker.has_batch() {
                    open.store(true, Ordering::Relaxed);
                }
            }
        });
        let gathered = Instant::now();
        group.legal.clear();
        let rows = group.rows.iter().sum::<u32>() as usize;
        group.legal.resize(rows, 0);
        if let Some(questions) = questions {
            let (mut lines, mut counts) = (questions, group.legal.as_mut_slice());
            let written = group.rows.chunks(size).map(|rows| {
                let rows = rows.iter().sum::<u32>() as usize;
                let (own_lines, other_lines) = std::mem::take(&mut lines).split_at_mut(rows * line.words());
                let (own_counts, other_counts) = std::mem::take(&mut counts).split_at_mut(rows);
                (lines, counts) = (other_lines, other_counts);
                (own_lines, own_counts)
            });
            let pieces: Vec<_> = trees.chunks(size).zip(written).collect();
            crew::together(threads, pieces.into_iter(), |(trees, (lines, counts))| write_questions(trees, line, lines, counts));
        }
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
    /// Tells `tree` what was answered to its `rows` rows.
    fn tell<G: Game + Classical>(&mut self, tree: &mut TreeSearch<Compiled<G>>, parts: &Parts, rows: usize) {
        if !tree.walker.has_batch() {
            return;
        }
        let (own, others) = self.numbers.split_at(rows * self.columns);
        let (legal, other_legal) = self.legal.split_at(rows);
        (self.numbers, self.legal) = (others, other_legal);
        self.values.clear();
        self.priors.clear();
        let waiting = tree.walker.pending.iter().filter(|leaf| leaf.value.is_none());
        for ((row, &legal), leaf) in own.chunks_exact(self.columns).zip(legal).zip(waiting) {
            let value = f64::from(row[self.columns - 1]).clamp(-1.0, 1.0);
            let value = if leaf.state.to_play() == 0 { value } else { -value };
            self.values.extend([value, -value]);
            let (legal, begun) = (usize::from(legal), self.priors.len());
            self.priors.resize(begun + legal, 0.0);
            // What could be wrong was looked for before anything was changed.
            let _ = priors(row[..legal].iter().copied(), self.kind, &mut self.priors[begun..]);
        }
        let (grown, walker) = tree.parts_mut();
        walker.apply(grown, parts, &self.values, &self.priors);
    }
}

/// Gathers the next batch of a tree: how many rows it has.
fn gather<G: Game + Classical>(tree: &mut TreeSearch<Compiled<G>>, parts: &Parts) -> u32 {
    if !tree.walker.full_batch && (tree.wants_more(parts) || !tree.walker.pending.is_empty()) {
        let (grown, walker) = tree.parts_mut();
        walker.gather(grown, parts);
        look::at_leaves::<Compiled<G>>(parts, &walker.learned, &mut walker.pending);
    }
    tree.walker.pending.iter().filter(|leaf| leaf.value.is_none()).count() as u32
}

/// Writes a line for every waiting leaf of `trees`, and how many legal actions it has.
fn write_questions<G: Game + Classical>(trees: &[TreeSearch<Compiled<G>>], line: Line, lines: &mut [u64], counts: &mut [u16]) {
    let mut rows = lines.chunks_exact_mut(line.words()).zip(counts);
    let mut scalars = vec![0.0; line.scalars];
    for search in trees {
        let tree = search.tree();
        for leaf in search.walker.pending.iter().filter(|leaf| leaf.value.is_none()) {
            let (Some((words, count)), Some(node)) = (rows.next(), leaf.node) else { continue };
            let (planes, rest) = words.split_at_mut(line.planes);
            leaf.state.pack_observation(planes, &mut scalars);
            let (scalar_words, legal_words) = rest.split_at_mut(line.scalars.div_ceil(2));
            for (word, pair) in scalar_words.iter_mut().zip(scalars.chunks(2)) {
                *word = pair.iter().rev().fold(0, |word, scalar| word << 32 | u64::from(scalar.to_bits()));
            }
            let actions = tree.edges(tree.node(node)).actions;
            *count = actions.len() as u16;
            legal_words.fill(0);
            for (word, four) in legal_words.iter_mut().zip(actions.chunks(4)) {
                *word = four.iter().rev().fold(0, |word, &action| word << 16 | u64::from(action));
            }
        }
    }
}
