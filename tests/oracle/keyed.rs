//! A `KeyedWheel` beside a map of the standard library, which holds for each key the tick,
//! the age and the payload of its timer.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tickwheel::Tick;
use tickwheel::wheel::KeyedWheel;

use crate::scripts::cases;

/// A call, with a key out of so few that most calls meet a timer.
#[derive(Clone, Debug)]
enum Op {
    Schedule(u8, u64),
    Reschedule(u8, u64),
    Cancel(u8),
    Replace(u8),
    Add(u8, u32),
    Pop(u64),
    Clear,
}

fn op() -> impl Strategy<Value = Op> {
    let (key, delay) = (0..24u8, 1..300u64);
    prop_oneof![
        8 => (key.clone(), delay.clone()).prop_map(|(key, delay)| Op::Schedule(key, delay)),
        3 => (key.clone(), delay).prop_map(|(key, delay)| Op::Reschedule(key, delay)),
        2 => key.clone().prop_map(Op::Cancel),
        2 => key.clone().prop_map(Op::Replace),
        2 => (key, 1..9u32).prop_map(|(key, by)| Op::Add(key, by)),
        3 => (0..80u64).prop_map(Op::Pop),
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
            Op::Schedule(key, delay) => self.schedule(key.to_string(), delay),
            Op::Reschedule(key, delay) => self.reschedule(&key.to_string(), delay),
            Op::Cancel(key) => {
                let timer = self.map.remove(&key.to_string());
                let payload = timer.map(|timer| timer.payload);
                assert_eq!(self.wheel.cancel(key.to_string().as_str()), payload);
            }
            Op::Replace(key) => self.replace(&key.to_string()),
            Op::Add(key, by) => self.add(&key.to_string(), by),
            Op::Pop(ticks) => self.pop(self.wheel.now().after(ticks)),
            Op::Clear => {
                self.wheel.clear();
                self.map.clear();
            }
        }
    }

    fn schedule(&mut self, key: String, delay: u64) {
        self.made += 1;
        let (deadline, payload) = (self.wheel.now().after(delay), self.made);
        let scheduled = self.wheel.schedule_at(key.clone(), deadline, payload);
        assert_eq!(scheduled.is_err(), self.map.contains_key(&key));
        let age = payload;
        self.map.entry(key).or_insert(Timer {
            deadline,
            age,
            payload,
        });
    }

    fn reschedule(&mut self, key: &str, delay: u64) {
        let deadline = self.wheel.now().after(delay);
        let timer = self.map.get_mut(key);
        assert_eq!(self.wheel.reschedule(key, deadline), timer.is_some());
        if let Some(timer) = timer {
            timer.deadline = deadline;
        }
    }

    fn replace(&mut self, key: &str) {
        self.made += 1;
        let replaced = match self.map.get_mut(key) {
            Some(timer) => Ok(std::mem::replace(&mut timer.payload, self.made)),
            None => Err(self.made),
        };
        assert_eq!(self.wheel.replace(key, self.made), replaced);
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

    fn pop(&mut self, to: Tick) {
        while let Some(expired) = self.wheel.pop_due(to) {
            let timers = self.map.iter();
            let first = timers.min_by_key(|(_, timer)| (timer.deadline, timer.age));
            let (key, &timer) = first.unwrap();
            assert_eq!((&expired.key, expired.deadline), (key, timer.deadline));
            assert_eq!(expired.payload, timer.payload);
            self.map.remove(&expired.key);
        }
        assert!(self.map.values().all(|timer| timer.deadline > to));
    }

    fn check(&self) {
        let timers = self.wheel.iter();
        let seen: HashMap<_, _> = timers
            .map(|(key, at, payload)| (key, (at, payload)))
            .collect();
        let of = |timer: &Timer| (timer.deadline, timer.payload);
        assert_eq!(
            (self.wheel.len(), seen.len()),
            (self.map.len(), self.map.len())
        );
        for key in (0..24u8).map(|key| key.to_string()) {
            let timer = self.map.get(&key).map(of);
            assert_eq!(seen.get(&key).map(|&(at, payload)| (at, *payload)), timer);
            assert_eq!(self.wheel.contains_key(&key), timer.is_some());
            let found = self.wheel.deadline(&key).zip(self.wheel.get(&key).copied());
            assert_eq!(found, timer);
        }
    }
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
