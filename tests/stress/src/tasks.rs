//! Closures on the engine's own workers: panics, handles that are dropped from inside a task,
//! tasks that are notified of their end.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tickwheel::{CloseReason, Engine, Firing, Refusal, Task, TaskEngine, Timer};

use crate::account::{Asked, End, Record};
use crate::drive::{self, Mover};
use crate::plan::{Fault, Plan, Random};
use crate::round::{Round, Side, cancelled};
use crate::tokens::Token;
use crate::watchdog::PLANNED;

impl Side for TaskEngine {
    type Payload = Task;

    fn start(plan: &Plan) -> (TaskEngine, Mover<Task>) {
        let builder = TaskEngine::builder().tick(plan.tick).shards(plan.shards);
        let mut builder = builder.workers(plan.workers_per_queue);
        if let Some(max) = plan.max_timers {
            builder = builder.max_timers(max);
        }
        drive::start(builder, plan.drive)
    }

    fn engine(&self) -> &Engine<Task> {
        self
    }

    fn call(&self, round: &Round, random: &mut Random) {
        if let Some(known) = round.book.find(random).filter(|_| random.once_in(5)) {
            return cancelled(self.cancel(known.id), &known.record);
        }
        let delay = Duration::from_micros(500) + random.micros(20_000);
        let mut asked = Asked { notified: random.once_in(4), ..Asked::default() };
        if !asked.notified && random.once_in(4) {
            asked.times = Some(1 + random.below(5) as u32);
            asked.period = delay.as_nanos() as u64;
        }
        let record = Record::new(asked, round.after(delay));
        let mut task = task(&record, self, round, random);
        let scheduled = if asked.times.is_none() && !asked.notified {
            let task = move || task(CloseReason::Completed, 1);
            self.run_after(delay, task).map_err(Refusal::from)
        } else {
            let task = move |firing: Firing| task(firing.outcome(), firing.number());
            let timer = match asked.times {
                Some(times) => Timer::every(delay, task).times(times.into()),
                None => Timer::after(delay, task).notified(),
            };
            self.run(timer).map_err(Refusal::from)
        };
        round.note(scheduled, record);
    }
}

/// A task that judges its firing, and now and then sleeps, panics, or drops the last handle.
fn task(
    record: &Arc<Record>,
    tasks: &TaskEngine,
    round: &Round,
    random: &mut Random,
) -> impl FnMut(CloseReason, u64) + Send + 'static {
    let (token, now, plan) = (Token::new(record), Arc::clone(&round.now), &round.plan);
    let sleeps = plan.has(Fault::Sleepers) && random.once_in(40);
    let sleep = random.micros(5_000) * u32::from(sleeps);
    let panics = plan.has(Fault::Panics) && random.once_in(20);
    let mut handle = (plan.has(Fault::Dropped) && random.once_in(5)).then(|| tasks.clone());
    move |outcome, number| {
        match outcome {
            CloseReason::Cancelled => return token.record.state().ends(End::Cancelled),
            CloseReason::ShutDown => return token.record.state().ends(End::ShutDown),
            _ => token.record.state().deliver(now(), number),
        }
        thread::sleep(sleep);
        drop(handle.take());
        token.record.state().in_hand -= 1;
        if panics {
            std::panic::panic_any(PLANNED);
        }
    }
}
