//! Promise 11: a refused timer comes back as it was, for every kind of timer
//! and every reason.

use super::*;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use tickwheel::{Firing, MissedTicks, Refusal, TaskEngine, Time, Timer};

const QUEUES: usize = 2;

/// All that can be said of a timer.
#[derive(Clone, Debug)]
struct Ask {
    at: bool,
    millis: u64,
    period: Option<u64>,
    starting: Option<u64>,
    times: Option<u64>,
    missed: Option<MissedTicks>,
    queue: usize,
    tolerance: u64,
    reported: bool,
    rearmable: bool,
    name: Option<&'static str>,
}

fn ask() -> impl Strategy<Value = Ask> {
    let policies = [MissedTicks::CatchUp, MissedTicks::Skip, MissedTicks::Delay];
    let first = (any::<bool>(), 1..10_000u64, weighted(0.7, 1..1_000u64));
    let repeat = (
        weighted(0.5, 1..10_000u64),
        weighted(0.5, 0..4u64),
        weighted(0.5, select(policies.to_vec())),
    );
    let queue = prop_oneof![9 => 0..QUEUES, 1 => Just(QUEUES)];
    let rest = (
        0..500u64,
        any::<bool>(),
        weighted(0.5, select(vec!["a", "b"])),
        any::<bool>(),
    );
    (first, repeat, queue, rest).prop_map(|(first, repeat, queue, rest)| Ask {
        at: first.0,
        millis: first.1,
        period: first.2,
        starting: repeat.0,
        times: repeat.1,
        missed: repeat.2,
        queue,
        tolerance: rest.0,
        reported: rest.1,
        name: rest.2,
        rearmable: rest.3,
    })
}

impl Ask {
    /// A timer with it, whose payload says nothing.
    fn timer<P>(&self, payload: P) -> Timer<P> {
        let millis = Duration::from_millis;
        let mut timer = match (self.period, self.at) {
            (Some(period), _) => Timer::every(millis(period), payload),
            (None, true) => Timer::at(Time::from_millis(self.millis), payload),
            (None, false) => Timer::after(millis(self.millis), payload),
        };
        timer = timer.queue(self.queue).tolerance(millis(self.tolerance));
        if let Some(first) = self.starting {
            timer = match self.at {
                true => timer.starting(Time::from_millis(first)),
                false => timer.starting(millis(first)),
            };
        }
        if let Some(times) = self.times {
            timer = timer.times(times);
        }
        if let Some(missed) = self.missed {
            timer = timer.missed(missed);
        }
        if self.reported {
            timer = timer.reported();
        }
        if self.rearmable {
            timer = timer.rearmable();
        }
        match self.name {
            Some(name) => timer.named(name),
            None => timer,
        }
    }

    /// What is wrong with it in itself.
    fn fault(&self) -> Option<Refusal> {
        let misfit = self.starting.is_some() || self.times.is_some() || self.missed.is_some();
        match self.period {
            _ if self.queue == QUEUES => Some(Refusal::NoSuchQueue),
            None if misfit => Some(Refusal::NotRepeating),
            _ => None,
        }
    }
}

fn engine() -> (Engine<u32>, VirtualClock<u32>) {
    let builder = Engine::builder().queues(QUEUES).shards(1).max_timers(1);
    builder.start_virtual().unwrap()
}

fn far(payload: u32) -> Timer<u32> {
    Timer::after(Duration::MAX, payload)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn promise_11_a_refused_timer_comes_back_as_it_was(ask in ask()) {
        let given = ask.timer(7);
        let refused_by = |engine: &Engine<u32>, reason| {
            let reason = ask.fault().unwrap_or(reason);
            let scheduled = engine.schedule(given.clone()).unwrap_err();
            let created = engine.create(given.clone()).unwrap_err();
            for refused in [scheduled, created] {
                assert_eq!(refused.reason(), reason);
                assert_eq!(refused.into_timer(), given);
            }
        };
        let (full, _clock) = engine();
        full.schedule(far(1)).unwrap();
        refused_by(&full, Refusal::Full);
        let (closed, _clock) = engine();
        closed.shutdown();
        refused_by(&closed, Refusal::ShutDown);
        let (drained, _clock) = engine();
        drained.drain(Duration::ZERO);
        refused_by(&drained, Refusal::ShutDown);
    }

    /// It was accepted, and stored; then the engine was shut down.
    #[test]
    fn promise_11_a_timer_refused_at_its_start_comes_back(ask in ask()) {
        let given = ask.timer(7);
        let (engine, _clock) = engine();
        if let Ok(unstarted) = engine.create(given.clone()) {
            assert_eq!(ask.fault(), None);
            engine.shutdown();
            let refused = unstarted.start().unwrap_err();
            assert_eq!(refused.reason(), Refusal::ShutDown);
            assert_eq!(refused.into_timer(), given);
        } else {
            assert!(ask.fault().is_some());
        }
    }

    /// Whichever way it takes into a task engine, a misfit is refused for the same reason.
    #[test]
    fn promise_11_every_way_in_refuses_a_misfit_alike(ask in ask()) {
        let task: fn(Firing) = |_| ();
        let (tasks, _clock) = TaskEngine::builder().start_virtual().unwrap();
        let ask = Ask { queue: 0, ..ask };
        let ways = [
            tasks.run(ask.timer(task)).map(|_| ()).map_err(|refused| refused.reason()),
            tasks.create(ask.timer(task)).map(|_| ()).map_err(|refused| refused.reason()),
        ];
        for way in ways {
            assert_eq!(way.err(), ask.fault());
        }
        let given = ask.timer(task);
        match (tasks.run_once(given.clone()), ask.period) {
            (Ok(_), None) => assert_eq!(ask.fault(), None),
            (Err(refused), period) => {
                let repeats = period.map(|_| Refusal::Repeating);
                assert_eq!(Some(refused.reason()), repeats.or(ask.fault()));
                assert_eq!(refused.into_timer(), given);
            }
            (Ok(_), Some(_)) => panic!("a closure that runs once was to repeat"),
        }
    }

    /// The closure comes back in it, in place of what it was made into.
    #[test]
    fn promise_11_a_refused_task_comes_back_as_it_was(ask in ask(), notified: bool) {
        let task: fn(Firing) = |_| ();
        let mut given = ask.timer(task);
        if notified {
            given = given.notified();
        }
        let (tasks, _clock) = TaskEngine::builder().start_virtual().unwrap();
        tasks.shutdown();
        for refused in [tasks.run(given.clone()).unwrap_err(), tasks.create(given.clone()).unwrap_err()] {
            assert_eq!(refused.into_timer(), given);
        }
    }
}
