//! The model of a program's timers under random schedules, to copy.

#![cfg(shuttle)]

use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU32, Ordering};
use shuttle::thread;
use tickwheel::{Engine, Time, Timer};

const SCHEDULES: usize = 1_000;
const PREEMPTIONS: usize = 3;

/// A hundred sessions are closed while they expire: each of them ends once.
#[test]
fn sessions_end_once() {
    shuttle::check_pct(close_and_expire, SCHEDULES, PREEMPTIONS);
}

fn close_and_expire() {
    let (timers, clock) = Engine::builder().shards(4).start_model().unwrap();
    let ends = Arc::new(AtomicU32::new(0));
    let sessions = 0..100;
    let ids: Vec<_> = sessions
        .map(|n| timers.schedule(Timer::at(Time::from_millis(n % 4), n)))
        .collect::<Result<_, _>>()
        .unwrap();

    let workers = [0, 1].map(|_| {
        let (queue, ends) = (timers.queue(0), Arc::clone(&ends));
        thread::spawn(move || {
            for _expired in queue {
                ends.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    let time = thread::spawn(move || (1..5).for_each(|n| clock.pass_to(Time::from_millis(n))));
    for id in ids {
        if timers.cancel(id).is_cancelled() {
            ends.fetch_add(1, Ordering::Relaxed);
        }
    }
    time.join().unwrap();
    let left = timers.shutdown().len();
    for worker in workers {
        worker.join().unwrap();
    }
    assert_eq!(ends.load(Ordering::Relaxed) as usize + left, 100);
}
