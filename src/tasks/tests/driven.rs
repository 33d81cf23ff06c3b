//! Loops that run tasks, beside a map of what is due; and a loop that has to run a task
//! although no timer has come due. It is not behind, however long the engine has run.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::VirtualClock;

const DAY: Duration = Duration::from_secs(86_400);

/// An engine whose clock stands still after three days.
fn three_days_old() -> (TaskEngine, Driver<Task>) {
    let clock = VirtualClock::starting_at(Time::START + 3 * DAY);
    TaskEngine::builder().start_driven_model(&clock).unwrap()
}

/// Returns how far the loop is behind, and how long it may sleep.
fn delays(timers: &TaskEngine, driver: &Driver<Task>) -> (Duration, Option<Duration>) {
    (timers.snapshot().behind, driver.timeout())
}

const RUNS_AT_ONCE: (Duration, Option<Duration>) = (Duration::ZERO, Some(Duration::ZERO));

#[test]
fn a_cancelled_task_that_runs_at_its_end_puts_no_loop_behind() {
    let (timers, driver) = three_days_old();
    let id = timers.run(Timer::after(DAY, |_| ()).notified()).unwrap();
    timers.cancel(id).into_payload().unwrap();
    assert_eq!(delays(&timers, &driver), RUNS_AT_ONCE);
    assert_eq!(driver.process_due(9), Advance::Done);
    assert_eq!(delays(&timers, &driver), (Duration::ZERO, None));
    // Nor does the loop wake up for what is cancelled later.
    let id = timers.run_after(DAY, || ()).unwrap();
    timers.cancel(id).into_payload().unwrap();
    assert_eq!(delays(&timers, &driver), (Duration::ZERO, None));
}

#[test]
fn a_loop_does_not_wait_for_a_time_that_never_comes() {
    let (timers, driver) = three_days_old();
    timers.run_after(Duration::MAX, || ()).unwrap();
    timers.run_after(Duration::ZERO, || ()).unwrap();
    assert_eq!(driver.process_due(9), Advance::Done);
    assert_eq!(delays(&timers, &driver), (Duration::ZERO, None));
}

#[test]
fn tasks_beyond_the_budget_put_no_loop_behind() {
    let (timers, driver) = three_days_old();
    for _ in 0..2 {
        timers.run_after(Duration::ZERO, || ()).unwrap();
    }
    assert_eq!(driver.process_due(1), Advance::More);
    assert_eq!(delays(&timers, &driver), RUNS_AT_ONCE);
    assert_eq!(driver.process_due(9), Advance::Done);
    assert_eq!(delays(&timers, &driver), (Duration::ZERO, None));
    // Tasks that are late in the wrong order have to be sorted, which costs none of the budget.
    (1..51).for_each(|n| _ = timers.run_at(Time::from_secs(99 - n), || ()).unwrap());
    assert_eq!(driver.process_due(50), Advance::Done);
}

#[test]
fn a_timer_that_catches_up_waits_for_the_loop_and_wakes_it() {
    let clock = VirtualClock::new();
    let engine = Engine::builder().shards(1).start_driven_model(&clock);
    let (engine, driver): (Engine<_>, _) = engine.unwrap();
    let queue = engine.queue(0);
    engine.schedule(Timer::every(Duration::from_millis(10), "beat")).unwrap();
    engine.schedule(Timer::after(Duration::from_millis(15), "other")).unwrap();
    engine.core().clock.set(Time::from_millis(10));
    assert_eq!(driver.process_due(9), Advance::Done);
    let beat = queue.try_recv().unwrap();
    engine.core().clock.set(Time::from_millis(25));
    drop(beat);
    assert_eq!((queue.len(), driver.timeout()), (0, Some(Duration::ZERO)));
    assert_eq!(driver.process_due(9), Advance::Done);
    let taken = queue.try_iter().map(|it| *it.payload());
    assert!(taken.eq(["other", "beat"]));
    // The loop has been where the next firing is due.
    engine.core().clock.set(Time::from_millis(45));
    assert_eq!(driver.process_due(9), Advance::Done);
    drop(queue.try_recv().unwrap());
    assert_eq!((queue.len(), driver.timeout()), (1, Some(Duration::ZERO)));
}

#[test]
fn a_loop_of_frames_gets_all_firings_that_it_missed() {
    let clock = VirtualClock::new();
    let engine = Engine::builder().start_driven_model(&clock);
    let (engine, driver): (Engine<_>, _) = engine.unwrap();
    engine.schedule(Timer::every(Duration::from_millis(5), ())).unwrap();
    for frame in 1..=50 {
        engine.core().clock.set(Time::from_millis(16 * frame));
        assert_eq!(driver.process_due(9), Advance::Done);
        engine.queue(0).try_iter().for_each(drop);
    }
    assert_eq!(engine.live().next().unwrap().deadline, Time::from_millis(805));
}

#[test]
fn a_loop_is_woken_for_a_cancelled_task_beside_one_that_waits() {
    let (timers, driver) = three_days_old();
    for _ in 0..2 {
        timers.run(Timer::after(Duration::ZERO, |_| ())).unwrap();
    }
    let id = timers.run(Timer::after(DAY, |_| ()).notified()).unwrap();
    assert!(timers.core().run_due(&mut { 9 }));
    assert_ne!(driver.timeout(), Some(Duration::ZERO));
    timers.cancel(id).into_payload().unwrap();
    assert_eq!(driver.timeout(), Some(Duration::ZERO));
}

#[derive(Clone, Debug)]
enum Op {
    /// Adds tasks that are due so many ticks from now, and their number.
    Add(u64, usize),
    Cancel(usize),
    /// Lets so many ticks pass.
    Pass(u64),
    RunDue(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let ticks = || prop_oneof![0..3u64, 0..30u64, prop::sample::select(vec![63u64, 64, 65])];
    prop_oneof![
        8 => (ticks(), prop_oneof![9 => 1..3usize, 1 => 20..50usize])
            .prop_map(|(ticks, count)| Op::Add(ticks, count)),
        1 => any::<usize>().prop_map(Op::Cancel),
        2 => ticks().prop_map(Op::Pass),
        3 => (0..4usize).prop_map(Op::RunDue),
    ]
}

/// A driven engine, and its tasks by their deadlines and their order. Each also says
/// whether it was added ahead of its deadline: others fire in rounds that let due slots in
/// between.
struct Loop {
    timers: TaskEngine,
    driver: Driver<Task>,
    waiting: BTreeMap<(u64, usize), (TimerId, bool)>,
    added: usize,
    ran: Arc<Mutex<Vec<usize>>>,
    /// The answer of the last call.
    answer: Advance,
}

impl Loop {
    fn now(&self) -> u64 {
        self.timers.current_tick().0
    }

    fn add(&mut self, due: u64) {
        let (ran, number) = (Arc::clone(&self.ran), self.added);
        self.added += 1;
        let task = move || ran.lock().unwrap().push(number);
        let id = self.timers.run_at(Time::from_millis(due), task).unwrap();
        let is_ahead = due > self.now();
        self.waiting.insert((due, number), (id, is_ahead));
    }

    fn run(&mut self, op: &Op) {
        match *op {
            Op::Add(ticks, count) => (0..count).for_each(|_| self.add(self.now() + ticks)),
            Op::Cancel(which) => {
                let picked = self.waiting.keys().nth(which % self.waiting.len().max(1));
                if let Some((id, _)) = picked.copied().and_then(|key| self.waiting.remove(&key)) {
                    assert_eq!(self.timers.cancel(id), Cancel::Cancelled(()));
                }
            }
            Op::Pass(ticks) => {
                let to = Time::from_millis(self.now() + ticks);
                self.timers.core().clock.set(to);
            }
            Op::RunDue(budget) => _ = self.run_due(budget),
        }
        let first = self.waiting.keys().next();
        let first = first.map(|&(due, _)| Time::from_millis(due.max(self.now())));
        let wakes = self.driver.next_wakeup();
        // After `More` the loop is to call again, even if the rest was cancelled.
        let is_called = wakes.is_some() && self.answer == Advance::More;
        assert!(wakes.is_some() == first.is_some() || is_called, "{wakes:?}");
        assert!(wakes <= first || first.is_none(), "{wakes:?}");
    }

    /// Runs due tasks, those that were added ahead in order, and says that it is done only if none is left.
    fn run_due(&mut self, budget: usize) -> Advance {
        self.answer = self.driver.process_due(budget);
        let ran = std::mem::take(&mut *self.ran.lock().unwrap());
        assert!(ran.len() <= budget);
        for number in ran {
            let key = *self.waiting.keys().find(|key| key.1 == number).unwrap();
            let (_, is_ahead) = self.waiting.remove(&key).unwrap();
            let is_passed = self.waiting.range(..key).any(|(_, &(_, ahead))| ahead);
            assert!(key.0 <= self.now() && !(is_ahead && is_passed), "{number}");
        }
        let is_due = self.waiting.keys().any(|&(due, _)| due <= self.now());
        assert!(self.answer == Advance::More || !is_due, "{:?}", self.answer);
        self.answer
    }
}

proptest! {
    #[test]
    fn a_loop_runs_what_is_due_in_order_and_within_its_budget(
        size in prop::sample::select(vec![2usize, 4, 64]),
        script in vec(op(), 1..120),
    ) {
        let builder = TaskEngine::builder().shards(1).wheel_size(size);
        let (timers, driver) = builder.start_driven_model(&VirtualClock::new()).unwrap();
        let mut this = Loop {
            timers,
            driver,
            waiting: BTreeMap::new(),
            added: 0,
            ran: Arc::default(),
            answer: Advance::Done,
        };
        script.iter().for_each(|op| this.run(op));
        this.run(&Op::Pass(100));
        while this.run_due(2) == Advance::More {}
        prop_assert!(this.waiting.is_empty());
    }
}
