//! A viewer on the engine of a program's own: sessions with keep-alives that clients renew,
//! and a sweep that runs every second.
//!
//! The program does its work on its own threads. The viewer reads the engine from the main
//! thread until q is pressed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tickwheel::TaskEngine;
use tickwheel_see::Viewer;

const SESSIONS: usize = 10_000;
const KEEP_ALIVE: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timers = TaskEngine::builder().name("sessions").workers(2).start()?;
    timers.run_every(Duration::from_secs(1), |_| ())?;
    let ends = Arc::new(AtomicBool::new(false));
    let clients = thread::spawn({
        let (timers, ends) = (timers.clone(), Arc::clone(&ends));
        move || serve(&timers, &ends)
    });
    let shown = Viewer::new(&timers).run();
    ends.store(true, Ordering::Relaxed);
    clients.join().expect("the clients do not panic");
    Ok(shown?)
}

/// Opens sessions, and renews the keep-alives of random ones.
fn serve(timers: &TaskEngine, ends: &AtomicBool) {
    let open = || timers.run_after(KEEP_ALIVE, || ());
    let mut sessions: Vec<_> = (0..SESSIONS).filter_map(|_| open().ok()).collect();
    let mut random = fastrand::Rng::new();
    while !ends.load(Ordering::Relaxed) {
        for _ in 0..SESSIONS / 100 {
            let session = random.choice(&mut sessions).expect("sessions were opened");
            if timers.reschedule(*session, KEEP_ALIVE).is_err() {
                // It has ended, so a client opens another one.
                *session = open().expect("the engine runs");
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
}
