//! A time limit for libraries that have none: a race of a future and a sleep.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// The sleep was over first.
#[derive(Debug)]
pub struct Late;

/// Polls the future first, and the sleep only if the future is not ready.
pub async fn race<F: Future>(future: F, sleep: impl Future) -> Result<F::Output, Late> {
    let mut future = pin!(future);
    let mut sleep = pin!(sleep);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => sleep.as_mut().poll(context).map(|_| Err(Late)),
    })
    .await
}
