//! The floor: a sleep reads the clock and keeps a waker, and nothing is ever due.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::rival::Awaited;

pub struct NoTimers;

pub struct Sleep {
    deadline: Instant,
    waker: Option<Waker>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        std::hint::black_box(self.deadline);
        self.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Awaited for NoTimers {
    const NAME: &'static str = "floor, no timers";
    const FIRES: bool = false;
    type Sleep = Sleep;
    type Elapsed = Infallible;

    fn sleep(delay: Duration) -> Sleep {
        NoTimers::sleep_until(Instant::now() + delay)
    }

    fn sleep_until(deadline: Instant) -> Sleep {
        let waker = None;
        Sleep { deadline, waker }
    }

    fn reset(sleep: Pin<&mut Sleep>, delay: Duration) {
        NoTimers::reset_at(sleep, Instant::now() + delay);
    }

    fn reset_at(sleep: Pin<&mut Sleep>, deadline: Instant) {
        std::hint::black_box(sleep.get_mut()).deadline = deadline;
    }

    async fn timeout<F>(_: Duration, future: F) -> Result<F::Output, Infallible>
    where
        F: Future<Output: Send> + Send,
    {
        Ok(future.await)
    }
}
