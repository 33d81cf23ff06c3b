//! Promises 10, 12 and 15, while the number of workers changes.

use super::*;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread;
use tickwheel::{StartError, Task, TaskEngine, Time};

/// A task engine whose workers are observed.
struct Crew {
    tasks: TaskEngine,
    clock: VirtualClock<Task>,
    left: Receiver<String>,
    leaving: Sender<String>,
}

thread_local! {
    static END: RefCell<Option<End>> = const { RefCell::new(None) };
}

/// Tells the name of its thread when that ends.
struct End(Sender<String>);

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.0.send(here());
    }
}

fn tell_at_end(leaving: Sender<String>) {
    END.with_borrow_mut(|end| {
        end.get_or_insert_with(|| End(leaving));
    });
}

/// The part of the thread's name that says which worker it is.
fn here() -> String {
    let thread = thread::current();
    let name = thread.name().unwrap_or_default();
    name.rsplit('-').next().unwrap_or_default().to_owned()
}

/// Tasks that have begun and do not end by themselves.
struct Held {
    workers: BTreeSet<String>,
    release: Vec<Sender<()>>,
}

impl Crew {
    fn new(workers: usize) -> Crew {
        let builder = TaskEngine::builder().shards(1).workers(workers);
        let (tasks, clock) = builder.start_virtual().unwrap();
        let (leaving, left) = channel();
        Crew {
            tasks,
            clock,
            left,
            leaving,
        }
    }

    fn run(&self, task: impl FnOnce() + Send + 'static) {
        self.tasks.run_after(Duration::ZERO, task).unwrap();
        self.clock.advance(Duration::ZERO);
    }

    /// Runs `count` tasks at a time, each in a worker of its own, and holds them.
    fn hold(&self, count: usize) -> Held {
        let all = Arc::new(Barrier::new(count));
        let (begin, begun) = channel();
        let hold_one = |_| {
            let (release, released) = channel::<()>();
            let (all, begin, leaving) = (Arc::clone(&all), begin.clone(), self.leaving.clone());
            self.run(move || {
                tell_at_end(leaving);
                all.wait();
                begin.send(here()).unwrap();
                let _ = released.recv();
            });
            release
        };
        let release = (0..count).map(hold_one).collect();
        let next = |_| begun.recv_timeout(PATIENCE).expect("too few workers");
        let workers = (0..count).map(next).collect();
        Held { workers, release }
    }

    /// The next worker whose thread ends.
    fn next_to_leave(&self) -> String {
        self.left.recv_timeout(PATIENCE).expect("no worker leaves")
    }

    /// Ends the engine. Returns the workers that had not left.
    fn finish(self) -> BTreeSet<String> {
        self.tasks.shutdown();
        self.tasks.join();
        drop(self.leaving);
        self.left.into_iter().collect()
    }
}

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

#[test]
fn promise_10_workers_that_are_added_serve_what_waits_for_busy_ones() {
    let crew = Crew::new(1);
    let slow = crew.hold(1);
    let both = Arc::new(Barrier::new(2));
    let (tell, told) = channel();
    for _ in 0..2 {
        let (both, tell) = (Arc::clone(&both), tell.clone());
        crew.run(move || {
            both.wait();
            tell.send(here()).unwrap();
        });
    }
    // The control: nothing runs beside a slow task of the only worker.
    assert_eq!(crew.tasks.engine().queue(0).len(), 2);
    crew.tasks.set_workers(3).unwrap();
    let next = || told.recv_timeout(PATIENCE).expect("the backlog waits");
    assert_eq!(BTreeSet::from([next(), next()]), names(["w1", "w2"]));
    drop(slow);
    assert_eq!(crew.finish(), names(["w0"]));
}

#[test]
fn promise_10_idle_workers_leave_while_another_is_busy() {
    let crew = Crew::new(3);
    drop(crew.hold(3));
    crew.clock.run_until(Time::START);
    let slow = crew.hold(1);
    crew.tasks.set_workers(1).unwrap();
    let left = BTreeSet::from([crew.next_to_leave(), crew.next_to_leave()]);
    assert!(left.is_disjoint(&slow.workers));
    assert_eq!(left.len(), 2);
    let stays = slow.workers.clone();
    drop(slow);
    assert_eq!(crew.hold(1).workers, stays);
    assert_eq!(crew.finish(), stays);
}

#[test]
fn promise_10_a_busy_worker_leaves_after_its_task() {
    let crew = Crew::new(2);
    let mut slow = crew.hold(2);
    crew.tasks.set_workers(1).unwrap();
    assert_eq!(crew.tasks.engine().snapshot().held, 2);
    // Whichever returns first leaves, and the other one stays.
    slow.release.pop();
    let left = crew.next_to_leave();
    slow.release.pop();
    let stays = crew.hold(1).workers;
    assert_eq!(&stays | &[left].into(), names(["w0", "w1"]));
    assert_eq!(crew.finish(), stays);
}

#[test]
fn promise_10_growing_keeps_workers_that_have_not_left() {
    let crew = Crew::new(2);
    let slow = crew.hold(2);
    crew.tasks.set_workers(1).unwrap();
    crew.tasks.set_workers(2).unwrap();
    drop(slow);
    assert_eq!(crew.hold(2).workers, names(["w0", "w1"]));
    assert!(crew.left.try_recv().is_err());
    assert_eq!(crew.finish(), names(["w0", "w1"]));
}

#[test]
fn promise_10_workers_that_are_added_take_the_numbers_of_those_that_left() {
    let crew = Crew::new(3);
    drop(crew.hold(3));
    crew.tasks.set_workers(1).unwrap();
    let left = BTreeSet::from([crew.next_to_leave(), crew.next_to_leave()]);
    crew.tasks.set_workers(3).unwrap();
    assert_eq!(crew.hold(3).workers, names(["w0", "w1", "w2"]));
    assert_eq!(left.len(), 2);
}

#[test]
fn promise_10_a_task_changes_the_number_of_workers() {
    let crew = Crew::new(1);
    let (tell, told) = channel();
    let inner = crew.tasks.clone();
    let (leaving, stays) = (crew.leaving.clone(), crew.leaving.clone());
    let (follow_up, wait) = channel();
    crew.run(move || {
        tell_at_end(leaving);
        inner.set_workers(2).unwrap();
        // Only a second worker ends this wait.
        wait.recv_timeout(PATIENCE).unwrap();
        inner.set_workers(1).unwrap();
        tell.send(inner.workers()).unwrap();
    });
    crew.run(move || {
        tell_at_end(stays);
        follow_up.send(()).unwrap();
    });
    assert_eq!(told.recv_timeout(PATIENCE), Ok(1));
    let left = crew.next_to_leave();
    assert_eq!(&crew.finish() | &[left].into(), names(["w0", "w1"]));
}

/// A refusal, and the number of workers after it.
fn refused(tasks: &TaskEngine, workers: usize) -> (StartError, usize) {
    let error = tasks.set_workers(workers).unwrap_err();
    assert_eq!(tasks.workers(), tasks.engine().snapshot().workers);
    (error, tasks.workers())
}

#[test]
fn promise_11_a_number_of_workers_is_refused_as_at_the_start() {
    let crew = Crew::new(2);
    let refused = |workers| refused(&crew.tasks, workers);
    assert!(matches!(refused(0), (StartError::NoWorkers, 2)));
    assert!(matches!(refused(4_097), (StartError::TooManyWorkers, 2)));
    assert!(matches!(
        refused(usize::MAX),
        (StartError::TooManyWorkers, 2)
    ));
    crew.tasks.set_workers(4).unwrap();
    crew.tasks.set_workers(3).unwrap();
    assert_eq!(crew.tasks.engine().snapshot().workers, 3);
    crew.tasks.shutdown();
    assert!(matches!(refused(1), (StartError::ShutDown, 3)));
    assert!(matches!(refused(5), (StartError::ShutDown, 3)));
    crew.tasks.join();
    assert!(matches!(refused(5), (StartError::ShutDown, 3)));
}

#[test]
fn promise_11_a_driven_engine_has_no_workers_to_change() {
    let (tasks, driver) = TaskEngine::builder().workers(2).start_driven().unwrap();
    for workers in [0, 1, 2] {
        assert!(matches!(refused(&tasks, workers), (StartError::Driven, 0)));
    }
    tasks.run_after(Duration::ZERO, || ()).unwrap();
    let _ = driver.run_due(9);
    assert_eq!(tasks.ledger().completed, 1);
}

#[test]
fn promise_12_a_join_waits_for_workers_that_were_added_meanwhile() {
    let crew = Crew::new(1);
    let (tell, told) = channel();
    let joins = {
        let tasks = crew.tasks.clone();
        thread::spawn(move || {
            tell.send(false).unwrap();
            tasks.join();
            tell.send(true).unwrap();
        })
    };
    assert_eq!(told.recv_timeout(PATIENCE), Ok(false));
    crew.tasks.set_workers(3).unwrap();
    let slow = crew.hold(3);
    crew.tasks.shutdown();
    // A join that does not wait is found sooner.
    let too_soon = told.recv_timeout(20 * MS).is_ok();
    drop(slow);
    joins.join().unwrap();
    assert!(!too_soon, "joined while tasks run");
    assert_eq!(crew.finish(), names(["w0", "w1", "w2"]));
}

#[test]
fn promise_12_a_notified_task_runs_although_its_worker_is_to_leave() {
    let crew = Crew::new(2);
    let (tell, told) = channel();
    let ended = move |firing: tickwheel::Firing| tell.send(firing.outcome()).unwrap();
    let beat = tickwheel::Timer::every(SECOND, ended).notified();
    crew.tasks.run(beat).unwrap();
    let slow = crew.hold(2);
    crew.tasks.set_workers(1).unwrap();
    crew.tasks.shutdown();
    drop(slow);
    crew.tasks.join();
    let outcomes: Vec<_> = told.try_iter().collect();
    assert_eq!(outcomes, [tickwheel::CloseReason::ShutDown]);
}

/// At each step a task changes the number of workers, and the clock awaits the tasks of
/// all of them.
#[test]
fn promise_15_run_until_awaits_workers_that_come_and_go() {
    let crew = Crew::new(1);
    let mut rng = Rng::with_seed(7);
    for step in 1..=100 {
        let workers = rng.usize(1..=5);
        for _ in 0..3 {
            let inner = crew.tasks.clone();
            let task = move || inner.set_workers(workers).unwrap();
            crew.tasks.run_after(SECOND, task).unwrap();
        }
        crew.tasks.set_workers(rng.usize(1..=5)).unwrap();
        crew.clock.run_until(Time::from_secs(step));
        assert_eq!(crew.tasks.ledger().completed, 3 * step);
        assert_eq!(crew.tasks.workers(), workers);
    }
    crew.finish();
}
