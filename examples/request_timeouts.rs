//! Timeouts of requests: each request is answered in time or expires, and never
//! both. Kafka has its timing wheel for this.
//!
//! Requests arrive at random (a Poisson process). The time of an answer is
//! log-normal: half take less than 20 ms and three quarters less than 60 ms. After
//! 200 ms a request expires, which about 7.9 % do. The program runs on a virtual
//! clock first, where the numbers are the same each time, and then for two
//! seconds in real time, where answers race with a worker.
//!
//! ```text
//! cargo run --release --example request_timeouts
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use tickwheel::{Engine, Time, Timer, TimerId};

const MEDIAN_MS: f64 = 20.0;
const THREE_QUARTERS_MS: f64 = 60.0;
const TIMEOUT: Duration = Duration::from_millis(200);

/// Three quarters of a standard normal distribution are below this.
const NORMAL_P75: f64 = 0.674_490;

fn main() -> Result<(), Box<dyn Error>> {
    let (engine, clock) = Engine::builder().start_virtual()?;
    clock.expect_workers(0, 1);
    // Waits until the worker has taken the timers that came due on the way.
    let wait_until = |time| clock.run_until(time);
    let share = run("virtual clock", &engine, 100_000, 10_000.0, wait_until)?;
    // Four standard deviations of so many requests are 0.34 %.
    if !(0.0753..0.0821).contains(&share) {
        return Err("this should have been about 7.9 %".into());
    }

    let engine = Engine::builder().start()?;
    let wait_until = |time: Time| thread::sleep(time - engine.now());
    run("real time", &engine, 40_000, 20_000.0, wait_until)?;
    Ok(())
}

/// Lets `requests` requests arrive, `per_second` of them a second, and checks
/// how they ended. Returns the share that expired.
fn run(
    what: &str,
    engine: &Engine<usize>,
    requests: usize,
    per_second: f64,
    wait_until: impl Fn(Time),
) -> Result<f64, Box<dyn Error>> {
    let purgatory = Purgatory {
        engine,
        answered: counters(requests),
        expired: counters(requests),
    };
    let left = thread::scope(|scope| {
        let queue = engine.queue(0);
        let expired = &purgatory.expired;
        scope.spawn(move || {
            for due in queue {
                expired[due.into_payload()].fetch_add(1, Ordering::Relaxed);
            }
        });
        let generated = purgatory.generate(per_second, wait_until);
        // The remaining requests expire; then the worker ends.
        let left = engine.drain(TIMEOUT).len();
        generated.map(|()| left)
    })?;
    purgatory.check(what, left)
}

struct Purgatory<'a> {
    engine: &'a Engine<usize>,
    /// The number of times that each request was answered in time, and that it
    /// expired.
    answered: Vec<AtomicU32>,
    expired: Vec<AtomicU32>,
}

impl Purgatory<'_> {
    /// Makes the requests and their answers.
    fn generate(&self, per_second: f64, wait_until: impl Fn(Time)) -> Result<(), Box<dyn Error>> {
        let mut random = Rng::with_seed(1);
        let mut answers: BinaryHeap<Reverse<(u64, usize, TimerId)>> = BinaryHeap::new();
        let mut arrival = self.engine.now();
        for request in 0..self.answered.len() {
            arrival = arrival + time_to_next(&mut random, per_second);
            // The answers that come before this request.
            while let Some(&Reverse((at, answered, id))) = answers.peek() {
                if at > arrival.as_nanos() {
                    break;
                }
                answers.pop();
                wait_until(Time::from_nanos(at));
                self.answer(answered, id);
            }
            wait_until(arrival);
            let deadline = arrival + TIMEOUT;
            let id = self.engine.schedule(Timer::at(deadline, request))?;
            let answer = arrival + answer_time(&mut random);
            answers.push(Reverse((answer.as_nanos(), request, id)));
        }
        let end = (arrival + TIMEOUT).as_nanos();
        while let Some(Reverse((at, request, id))) = answers.pop() {
            if at > end {
                break;
            }
            wait_until(Time::from_nanos(at));
            self.answer(request, id);
        }
        Ok(())
    }

    /// Counts an answer if it cancels the timeout. Otherwise it came too late.
    fn answer(&self, request: usize, id: TimerId) {
        if self.engine.cancel(id).payload().is_some() {
            self.answered[request].fetch_add(1, Ordering::Relaxed);
        }
    }

    fn check(&self, what: &str, left: usize) -> Result<f64, Box<dyn Error>> {
        let count = |counter: &AtomicU32| u64::from(counter.load(Ordering::Relaxed));
        let endings = self.answered.iter().zip(&self.expired);
        let wrong = endings.filter(|(a, e)| count(a) + count(e) != 1).count();
        let answered: u64 = self.answered.iter().map(count).sum();
        let expired: u64 = self.expired.iter().map(count).sum();
        let share = expired as f64 / self.expired.len() as f64;
        let ledger = self.engine.ledger();
        println!(
            "{what}: {} requests = {answered} answered + {expired} expired ({:.2} %), \
             {wrong} not ended exactly once; ledger: {} cancelled, {} completed, {} live",
            self.answered.len(),
            100.0 * share,
            ledger.cancelled,
            ledger.completed,
            ledger.live
        );
        if wrong > 0 || left > 0 {
            return Err("a request did not end exactly once".into());
        }
        if !ledger.is_balanced() || (ledger.cancelled, ledger.completed) != (answered, expired) {
            return Err("the ledger does not agree".into());
        }
        Ok(share)
    }
}

fn counters(len: usize) -> Vec<AtomicU32> {
    (0..len).map(|_| AtomicU32::new(0)).collect()
}

/// Returns the time between two arrivals.
fn time_to_next(random: &mut Rng, per_second: f64) -> Duration {
    Duration::from_secs_f64(-above_zero(random).ln() / per_second)
}

/// Returns the time that an answer takes: the exponential of a normal variable,
/// by Box and Muller.
fn answer_time(random: &mut Rng) -> Duration {
    let mu = MEDIAN_MS.ln();
    let sigma = (THREE_QUARTERS_MS.ln() - mu) / NORMAL_P75;
    let radius = (-2.0 * above_zero(random).ln()).sqrt();
    let normal = radius * (std::f64::consts::TAU * random.f64()).cos();
    Duration::from_secs_f64((mu + sigma * normal).exp() / 1_000.0)
}

/// At most 1, and never 0, which has no logarithm.
fn above_zero(random: &mut Rng) -> f64 {
    1.0 - random.f64()
}
