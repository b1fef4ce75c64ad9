//! Models of the protocol, run in all interleavings with a bounded number of preemptions (`make loom`).

use super::*;
use loom::sync::atomic::AtomicUsize;

/// Runs `model` under every interleaving with at most `preemptions` preemptions.
fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Runs jobs of alternating widths. Loom reports unsynchronised accesses to the job and to its data.
fn alternate(threads: usize, widths: &[usize]) {
    let mut pool = ThreadPool::new(threads);
    for &width in widths {
        let (used, inside) = (SharedCell(UnsafeCell::new(0)), AtomicUsize::new(0));
        pool.run(width, &|rank| {
            assert!(rank < width, "rank {rank} in a job of width {width}");
            inside.fetch_add(1, Ordering::Relaxed);
            used.read();
        });
        // Races with the read of any worker that is still inside.
        used.write();
        assert!((1..=width).contains(&inside.load(Ordering::Relaxed)));
    }
}

#[test]
fn loom_one_worker_stays_out_of_narrower_jobs_and_leaves_before_the_caller() {
    check(4, || alternate(2, &[2, 1, 2]));
}

#[test]
fn loom_two_workers_stay_out_of_narrower_jobs_and_leave_before_the_caller() {
    check(2, || alternate(3, &[3, 2]));
}

/// The caller waits in the job for the worker, which joins only if no wake-up is lost.
#[test]
fn loom_no_wake_up_is_lost() {
    check(3, || {
        let mut pool = ThreadPool::new(2);
        for _ in 0..2 {
            let inside = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&inside);
            pool.run(2, &move |_| {
                count.fetch_add(1, Ordering::Relaxed);
                while count.load(Ordering::Relaxed) < 2 {
                    loom::thread::yield_now();
                }
            });
        }
    });
}

struct SharedCell(UnsafeCell<usize>);

// SAFETY: loom's cells panic where two threads use them without synchronisation.
#[expect(unsafe_code, reason = "see above")]
unsafe impl Sync for SharedCell {}

impl SharedCell {
    fn read(&self) {
        // SAFETY: as above.
        #[expect(unsafe_code, reason = "see above")]
        self.0.with(|place| unsafe { std::ptr::read(place) });
    }

    fn write(&self) {
        // SAFETY: as above.
        #[expect(unsafe_code, reason = "see above")]
        self.0.with_mut(|place| unsafe { *place += 1 });
    }
}
