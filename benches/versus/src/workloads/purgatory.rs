//! Requests that wait for an answer with a timeout, as in a message broker: Poisson
//! arrivals, one timeout for all, log-normal completion.

use fastrand::Rng;

use super::common::{Table, advance};
use crate::case::{Case, Effort};
use crate::rival::Timers;
use crate::rivals::owners;
use crate::stopwatch::Stopwatch;

const ARRIVALS_PER_TICK: f64 = 100.0;
const MEDIAN_TICKS: f64 = 20.0;
const UPPER_QUARTILE_TICKS: f64 = 60.0;
const TIMEOUT_TICKS: u64 = 200;

/// The upper quartile of the standard normal distribution.
const NORMAL_QUARTILE: f64 = 0.674_490;

pub fn cases(effort: Effort) -> Vec<Case> {
    let requests = effort.either(100_000, 1_000_000);
    owners!(case(requests))
}

#[derive(Clone, Copy)]
enum Event {
    Arrives(usize),
    Completes(usize),
}

fn case<T: Timers>(requests: usize) -> Case {
    Case::of::<T>(&[("request", "ns")], requests, move || {
        vec![replay::<T>(requests, &events(requests))]
    })
}

/// Returns the events with their ticks. One request in thirteen does not complete
/// in time.
fn events(requests: usize) -> Vec<(u64, Event)> {
    let mut rng = Rng::with_seed(8);
    let mu = MEDIAN_TICKS.ln();
    let sigma = (UPPER_QUARTILE_TICKS.ln() - mu) / NORMAL_QUARTILE;
    let mut events = Vec::with_capacity(2 * requests);
    let mut now = 0.0;
    for request in 0..requests {
        now -= (1.0 - rng.f64()).ln() / ARRIVALS_PER_TICK;
        let arrival = now as u64;
        let takes = (mu + sigma * normal(&mut rng)).exp().ceil() as u64;
        events.push((arrival, Event::Arrives(request)));
        if takes < TIMEOUT_TICKS {
            events.push((arrival + takes, Event::Completes(request)));
        }
    }
    events.sort_by_key(|&(tick, _)| tick);
    events
}

/// Normally distributed but for the tails, mean 0 and deviation 1.
fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
}

fn replay<T: Timers>(requests: usize, events: &[(u64, Event)]) -> f64 {
    let mut timers = T::new();
    let mut table: Table<T> = (0..requests).map(|_| None).collect();
    let mut fired = Vec::new();
    let mut now = 0;
    let begun = Stopwatch::start();
    for &(tick, event) in events {
        while now < tick {
            now += 1;
            advance(&mut timers, now, &mut table, &mut fired);
        }
        match event {
            Event::Arrives(request) => {
                let id = timers.schedule(now + TIMEOUT_TICKS, request as u64);
                table[request] = Some(id);
            }
            Event::Completes(request) => {
                if let Some(id) = table[request].take() {
                    timers.cancel(id);
                }
            }
        }
    }
    begun.per_step(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_thirteen_times_out() {
        let requests = 100_000;
        let completed = events(requests).len() - requests;
        let expired = 1.0 - completed as f64 / requests as f64;
        assert!((0.074..0.086).contains(&expired), "{expired}");
    }
}
