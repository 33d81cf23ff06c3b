//! Requests that wait for an answer with a timeout, as in a message broker: Poisson
//! arrivals, one timeout for all, log-normal completion.

use std::time::Duration;

use fastrand::Rng;

use super::setup::{Table, advance};
use crate::case::{Case, Reading};
use crate::effort::Effort;
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
    Case::new(T::NAME, T::THREAD_SAFE, requests, move || {
        let elapsed = replay::<T>(requests, &events(requests));
        vec![Reading::per_step("request", elapsed, requests)]
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
        now -= fraction(&mut rng).ln() / ARRIVALS_PER_TICK;
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

/// Above 0 and at most 1, so that it has a logarithm.
fn fraction(rng: &mut Rng) -> f64 {
    1.0 - rng.f64()
}

/// Normally distributed, mean 0 and deviation 1, by Box and Muller.
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * fraction(rng).ln()).sqrt();
    radius * (std::f64::consts::TAU * fraction(rng)).cos()
}

fn replay<T: Timers>(requests: usize, events: &[(u64, Event)]) -> Duration {
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
    begun.elapsed()
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
