//! Threads that look at the leaves of one tree together. Starting a thread costs as much as looking at many leaves, so they are
//! started once for a run, and wait awake for the next batch, which is only as far away as a gathering.

use std::sync::mpsc::{channel, Receiver, Sender, TryRecvError};
use std::sync::Arc;
use std::thread::Scope;
use std::time::{Duration, Instant};

use crate::experience::Learned;
use crate::look;
use crate::parts::Parts;
use crate::search::Pending;
use crate::world::World;

/// A thread waits awake for so long, and then sleeps.
const AWAKE: Duration = Duration::from_micros(300);
/// Looks at a channel between two looks at the clock.
const LOOKS: u32 = 64;
/// Fewer leaves are not worth handing over.
const FEWEST: usize = 2;

/// Leaves to look at, and what was learned when their batch began.
struct Job<W: World> {
    leaves: Vec<Pending<W::State>>,
    learned: Arc<Learned>,
}

/// One helper: where it takes jobs, and where it gives them back.
type Helper<W> = (Sender<Job<W>>, Receiver<Vec<Pending<<W as World>::State>>>);

/// The helpers of one run.
pub struct Team<W: World> {
    helpers: Vec<Helper<W>>,
}

impl<W: World> Team<W> {
    /// Starts `threads - 1` helpers; they end with the team.
    pub fn new<'scope, 'env>(scope: &'scope Scope<'scope, 'env>, threads: usize, parts: &'env Parts) -> Self {
        let start = |_| {
            let (give, jobs) = channel::<Job<W>>();
            let (done, take_back) = channel();
            scope.spawn(move || {
                while let Some(Job { mut leaves, learned }) = next(&jobs) {
                    look::at_leaves::<W>(parts, &learned, &mut leaves, 1);
                    // Before the leaves go back: whoever has them may want to learn.
                    drop(learned);
                    if done.send(leaves).is_err() {
                        return;
                    }
                }
            });
            (give, take_back)
        };
        Self { helpers: (1..threads).map(start).collect() }
    }

    /// Looks at all leaves, each helper at a share; they keep their order.
    pub fn look(&self, parts: &Parts, learned: &Arc<Learned>, leaves: &mut Vec<Pending<W::State>>) {
        let share = leaves.len().div_ceil(self.helpers.len() + 1).max(FEWEST);
        let mut rest = leaves.split_off(share.min(leaves.len()));
        let mut busy = Vec::with_capacity(self.helpers.len());
        for (give, take_back) in &self.helpers {
            if rest.is_empty() {
                break;
            }
            let others = rest.split_off(share.min(rest.len()));
            if give.send(Job { leaves: std::mem::replace(&mut rest, others), learned: Arc::clone(learned) }).is_ok() {
                busy.push(take_back);
            }
        }
        look::at_leaves::<W>(parts, learned, leaves, 1);
        for take_back in busy {
            // Nothing comes from a helper that has panicked; the scope hands its panic on.
            leaves.extend(next(take_back).into_iter().flatten());
        }
    }
}

/// The next thing out of a channel: waited for awake at first. None when the other end is gone.
fn next<T>(channel: &Receiver<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        for _ in 0..LOOKS {
            match channel.try_recv() {
                Ok(thing) => return Some(thing),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => std::hint::spin_loop(),
            }
        }
        if begun.elapsed() > AWAKE {
            return channel.recv().ok();
        }
    }
}
