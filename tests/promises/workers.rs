//! Promises 10, 11, 12 and 15, while the number of workers changes.

use super::*;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// A task engine whose workers are observed: those that leave tell their names.
struct Crew {
    tasks: TaskEngine,
    clock: VirtualClock,
    left: Told<String>,
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
        let left = told();
        Crew { tasks, clock, left }
    }

    fn run(&self, task: impl FnOnce() + Send + 'static) {
        self.tasks.run_after(Duration::ZERO, task).unwrap();
        self.clock.advance(Duration::ZERO);
    }

    /// Runs `count` tasks at a time, each in a worker of its own, and holds them.
    fn hold(&self, count: usize) -> Held {
        let (all, begun) = (Arc::new(Barrier::new(count)), told());
        let hold_one = |_| {
            let (release, released) = channel::<()>();
            let (all, begin, leaving) = (Arc::clone(&all), begun.tell(), self.left.tell());
            self.run(move || {
                END.with_borrow_mut(|end| _ = end.get_or_insert_with(|| End(leaving)));
                all.wait();
                begin.send(here()).unwrap();
                let _ = released.recv();
            });
            release
        };
        let release = (0..count).map(hold_one).collect();
        let workers = (0..count).map(|_| begun.next()).collect();
        Held { workers, release }
    }

    /// Ends the engine. Returns the workers that had not left.
    fn finish(self) -> BTreeSet<String> {
        self.tasks.shutdown();
        self.tasks.join();
        drop(self.left.0);
        self.left.1.into_iter().collect()
    }
}

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

#[test]
fn promise_10_workers_that_are_added_serve_what_waits_for_busy_ones() {
    let crew = Crew::new(1);
    let slow = crew.hold(1);
    let (both, told) = (Arc::new(Barrier::new(2)), told());
    for _ in 0..2 {
        let (both, tell) = (Arc::clone(&both), told.tell());
        crew.run(move || {
            both.wait();
            tell.send(here()).unwrap();
        });
    }
    // The control: nothing runs beside a slow task of the only worker.
    assert_eq!(crew.tasks.queue(0).len(), 2);
    crew.tasks.set_workers(3).unwrap();
    let ran_on = BTreeSet::from([told.next(), told.next()]);
    assert_eq!(ran_on, names(["w1", "w2"]));
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
    let left = BTreeSet::from([crew.left.next(), crew.left.next()]);
    assert!(left.is_disjoint(&slow.workers));
    assert_eq!(left.len(), 2);
    let stays = slow.workers.clone();
    drop(slow);
    assert_eq!(crew.hold(1).workers, stays);
    // Those that are added take the numbers of those that left.
    crew.tasks.set_workers(3).unwrap();
    assert_eq!(crew.hold(3).workers, names(["w0", "w1", "w2"]));
}

#[test]
fn promise_10_a_busy_worker_leaves_after_its_task() {
    let crew = Crew::new(2);
    let slow = crew.hold(2);
    // Growing keeps a worker that has not left.
    for workers in [1, 2, 1] {
        crew.tasks.set_workers(workers).unwrap();
    }
    let told = told();
    let notified = Timer::every(SECOND, told.of(Firing::outcome));
    crew.tasks.run(notified.notified()).unwrap();
    assert_eq!(crew.tasks.snapshot().held, 2);
    // Whichever returns first leaves, and the other one stays.
    let mut release = slow.release;
    release.pop();
    let left = crew.left.next();
    release.pop();
    let stays = crew.hold(1).workers;
    assert_eq!(&stays | &[left].into(), names(["w0", "w1"]));
    assert_eq!(crew.finish(), stays);
    assert_eq!(told.all(), [CloseReason::ShutDown]);
}

/// A refusal, and the number of workers after it.
fn refused(tasks: &TaskEngine, workers: usize) -> (String, usize) {
    let error = tasks.set_workers(workers).unwrap_err();
    assert_eq!(tasks.workers(), tasks.snapshot().workers);
    let why = match error {
        StartError::Setting(name, _) => name.to_owned(),
        other => format!("{other:?}"),
    };
    (why, tasks.workers())
}

#[test]
fn promise_11_a_number_of_workers_is_refused_as_at_the_start() {
    let crew = Crew::new(2);
    let refuses = |workers, why: &str, stay| {
        assert_eq!(refused(&crew.tasks, workers), (why.to_owned(), stay));
    };
    refuses(0, "workers", 2);
    refuses(4_097, "workers", 2);
    refuses(usize::MAX, "workers", 2);
    crew.tasks.set_workers(4).unwrap();
    crew.tasks.set_workers(3).unwrap();
    crew.tasks.shutdown();
    refuses(1, "ShutDown", 3);
    refuses(5, "ShutDown", 3);
    crew.tasks.join();
    refuses(5, "ShutDown", 3);
}

#[test]
fn promise_11_a_driven_engine_has_no_workers_to_change() {
    let (tasks, _driver) = TaskEngine::builder().workers(2).start_driven().unwrap();
    for workers in [0, 1, 2] {
        assert_eq!(refused(&tasks, workers), ("Driven".to_owned(), 0));
    }
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

#[test]
fn promise_15_run_until_awaits_the_last_task_of_an_engine_that_was_shut_down() {
    let crew = Crew::new(1);
    let slow = crew.hold(1);
    crew.tasks.shutdown();
    let _another = Engine::<()>::builder().start_on(&crew.clock).unwrap();
    thread::scope(|scope| {
        let owner = scope.spawn(|| crew.clock.run_until(at(1)));
        thread::sleep(20 * MS);
        assert!(!owner.is_finished(), "did not wait for it");
        drop(slow);
    });
}
