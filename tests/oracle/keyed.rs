//! A `KeyedWheel` beside a map of the standard library, which holds for each key the tick,
//! the age and the payload of its timer.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tickwheel::Tick;
use tickwheel::wheel::{KeyedExpired, KeyedWheel};

use crate::scripts::cases;

/// A call, with a key out of so few that most calls meet a timer.
#[derive(Clone, Debug)]
enum Op {
    Insert(u8, u64),
    TryInsert(u8, u64),
    Reschedule(u8, u64),
    Cancel(u8),
    Add(u8, u32),
    PopDue(u64),
    PopFirst,
    Clear,
}

fn op() -> impl Strategy<Value = Op> {
    // The short ones are often due at one tick.
    let (key, delay) = (0..24u8, prop_oneof![1..300u64, 1..9u64]);
    prop_oneof![
        6 => (key.clone(), delay.clone()).prop_map(|(key, delay)| Op::Insert(key, delay)),
        4 => (key.clone(), delay.clone()).prop_map(|(key, delay)| Op::TryInsert(key, delay)),
        3 => (key.clone(), delay).prop_map(|(key, delay)| Op::Reschedule(key, delay)),
        2 => key.clone().prop_map(Op::Cancel),
        2 => (key, 1..9u32).prop_map(|(key, by)| Op::Add(key, by)),
        3 => (0..80u64).prop_map(Op::PopDue),
        4 => Just(Op::PopFirst),
        1 => Just(Op::Clear),
    ]
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Timer {
    deadline: Tick,
    age: u32,
    payload: u32,
}

struct Pair {
    wheel: KeyedWheel<String, u32>,
    map: HashMap<String, Timer>,
    made: u32,
}

impl Pair {
    fn run(&mut self, op: &Op) {
        match *op {
            Op::Insert(key, delay) => self.insert(key.to_string(), delay),
            Op::TryInsert(key, delay) => self.try_insert(key.to_string(), delay),
            Op::Reschedule(key, delay) => self.reschedule(&key.to_string(), delay),
            Op::Cancel(key) => {
                let timer = self.map.remove(&key.to_string());
                let payload = timer.map(|timer| timer.payload);
                assert_eq!(self.wheel.cancel(key.to_string().as_str()), payload);
            }
            Op::Add(key, by) => self.add(&key.to_string(), by),
            Op::PopDue(ticks) => self.pop_due(self.wheel.now().after(ticks)),
            Op::PopFirst => {
                let (now, expired) = (self.wheel.now(), self.wheel.pop_first());
                assert_eq!(self.take_first(), expired.map(parts));
                assert_eq!(self.wheel.now(), now);
            }
            Op::Clear => {
                self.wheel.clear();
                self.map.clear();
            }
        }
    }

    /// Makes a timer that is younger than all others.
    fn timer(&mut self, delay: u64) -> Timer {
        self.made += 1;
        Timer { deadline: self.wheel.now().after(delay), age: self.made, payload: self.made }
    }

    /// A timer that is replaced keeps its age.
    fn insert(&mut self, key: String, delay: u64) {
        let mut timer = self.timer(delay);
        let old = self.map.get(&key).copied();
        timer.age = old.map_or(timer.age, |old| old.age);
        let replaced = self.wheel.insert(key.clone(), timer.deadline, timer.payload);
        assert_eq!(replaced, old.map(|old| old.payload));
        self.map.insert(key, timer);
    }

    fn try_insert(&mut self, key: String, delay: u64) {
        let timer = self.timer(delay);
        let inserted = self.wheel.try_insert(key.clone(), timer.deadline, timer.payload);
        let refused = inserted.map_err(|refused| (refused.key, refused.payload));
        let expected =
            if self.map.contains_key(&key) { Err((key.clone(), timer.payload)) } else { Ok(()) };
        assert_eq!(refused, expected);
        self.map.entry(key).or_insert(timer);
    }

    fn reschedule(&mut self, key: &str, delay: u64) {
        let deadline = self.wheel.now().after(delay);
        let timer = self.map.get_mut(key);
        assert_eq!(self.wheel.reschedule(key, deadline), timer.is_some());
        if let Some(timer) = timer {
            timer.deadline = deadline;
        }
    }

    fn add(&mut self, key: &str, by: u32) {
        let payload = self.wheel.get_mut(key).map(|payload| {
            *payload += by;
            *payload
        });
        let timer = self.map.get_mut(key);
        let expected = timer.map(|timer| {
            timer.payload += by;
            timer.payload
        });
        assert_eq!(payload, expected);
    }

    fn pop_due(&mut self, to: Tick) {
        while let Some(expired) = self.wheel.pop_due(to) {
            assert_eq!(self.take_first(), Some(parts(expired)));
        }
        assert!(self.map.values().all(|timer| timer.deadline > to));
    }

    /// Takes the timer that is due first out of the map: its key, deadline and payload.
    fn take_first(&mut self) -> Option<(String, Tick, u32)> {
        let timers = self.map.iter();
        let first = timers.min_by_key(|(_, timer)| (timer.deadline, timer.age));
        let (key, timer) = first.map(|(key, &timer)| (key.clone(), timer))?;
        self.map.remove(&key);
        Some((key, timer.deadline, timer.payload))
    }

    fn check(&self) {
        let timers = self.wheel.iter();
        let seen: HashMap<_, _> = timers.map(|(key, at, payload)| (key, (at, payload))).collect();
        let of = |timer: &Timer| (timer.deadline, timer.payload);
        assert_eq!((self.wheel.len(), seen.len()), (self.map.len(), self.map.len()));
        assert_eq!(self.wheel.is_empty(), self.map.is_empty());
        let earliest = self.map.values().map(|timer| timer.deadline).min();
        assert_eq!(self.wheel.earliest_deadline(), earliest);
        let next = self.wheel.next_wakeup();
        assert!(next.is_some() == earliest.is_some() && next <= earliest);
        assert!(next.is_none_or(|next| next >= self.wheel.now()));
        for key in (0..24u8).map(|key| key.to_string()) {
            let timer = self.map.get(&key).map(of);
            assert_eq!(seen.get(&key).map(|&(at, payload)| (at, *payload)), timer);
            assert_eq!(self.wheel.contains_key(&key), timer.is_some());
            let found = self.wheel.deadline(&key).zip(self.wheel.get(&key).copied());
            assert_eq!(found, timer);
        }
    }
}

fn parts(expired: KeyedExpired<String, u32>) -> (String, Tick, u32) {
    (expired.key, expired.deadline, expired.payload)
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn a_keyed_wheel_does_what_a_map_does(ops in vec(op(), 0..120)) {
        let mut pair = Pair {
            wheel: KeyedWheel::new(4),
            map: HashMap::new(),
            made: 0,
        };
        for op in &ops {
            pair.run(op);
            pair.check();
        }
    }
}
