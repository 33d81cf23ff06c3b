//! The layer `tickwheel::time::tower::TimeoutLayer` in a stack of tower's.

use super::*;
use ::tower::{BoxError, Service, ServiceBuilder, ServiceExt, service_fn};
use std::convert::Infallible;
use std::future::{Ready, ready};
use tickwheel::time::tower::{Timeout, TimeoutError, TimeoutLayer};
use tokio::task::JoinHandle;

const LIMIT: Duration = Duration::from_secs(30);

type Call = JoinHandle<Result<(), TimeoutError<Infallible>>>;

/// Timers of one's own, and a call with a limit that waits in vain for an answer.
async fn stuck() -> (&'static Timers, VirtualClock, Call) {
    let (timers, clock) = paused();
    let timers = timers.leak();
    let stuck = service_fn(|()| pending::<Result<(), Infallible>>());
    let service = ServiceBuilder::new().layer(TimeoutLayer::on(timers, LIMIT));
    let call = service.service(stuck).call(());
    // The limit runs from the first poll.
    clock.advance(LIMIT / 2);
    let call = tokio::spawn(call);
    while timers.ledger().live == 0 {
        yield_now().await;
    }
    (timers, clock, call)
}

#[tokio::test]
async fn a_call_that_never_ends_is_dropped_at_its_limit() {
    let (timers, clock, call) = stuck().await;
    clock.advance(LIMIT - Duration::from_nanos(1));
    yield_now().await;
    assert!(!call.is_finished());
    clock.advance(ms(1));
    let answer = tokio::time::timeout(PATIENCE, call).await;
    let failed = answer.unwrap().unwrap().unwrap_err();
    assert!(failed.is_elapsed(), "{failed}");
    assert_eq!(timers.ledger().live, 0);
}

#[tokio::test]
async fn after_the_shutdown_of_its_timers_a_waiting_call_fails_and_says_so() {
    let (timers, _clock, call) = stuck().await;
    assert_eq!(timers.shutdown(), 1);
    match call.await.unwrap() {
        Err(TimeoutError::Elapsed(elapsed)) => assert!(elapsed.is_shut_down()),
        other => panic!("{other:?}"),
    }
}

/// A call that is ready at once does not even begin one.
#[tokio::test]
async fn an_answer_in_time_leaves_no_sleep_behind() {
    let (timers, clock) = paused();
    let timers = timers.leak();
    let service = service_fn(move |wait: Duration| async move {
        if wait > Duration::ZERO {
            timers.sleep(wait).await;
        }
        Ok::<_, Infallible>(7)
    });
    let service = ServiceBuilder::new().layer(TimeoutLayer::on(timers, LIMIT)).service(service);
    assert_eq!(service.oneshot(Duration::ZERO).await, Ok(7));
    assert_eq!(timers.ledger().accepted, 0);
    let call = tokio::spawn(service.oneshot(LIMIT / 2));
    while timers.ledger().live < 2 {
        yield_now().await;
    }
    clock.advance(LIMIT / 2);
    assert_eq!(call.await.unwrap(), Ok(7));
    assert_eq!(timers.ledger().live, 0);
}

/// A service that nobody may call.
struct Closed;

impl Service<()> for Closed {
    type Response = ();
    type Error = &'static str;
    type Future = Ready<Result<(), &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        Poll::Ready(Err("closed"))
    }

    fn call(&mut self, (): ()) -> Self::Future {
        unreachable!("it is not ready")
    }
}

#[tokio::test]
async fn a_service_that_is_not_ready_is_not_called() {
    let answer = Timeout::new(Closed, LIMIT).oneshot(()).await;
    assert_eq!(answer, Err(TimeoutError::Service("closed")));
}

/// As every layer of tower's, it takes and gives errors that become a `BoxError`.
#[tokio::test]
async fn an_error_of_the_service_comes_through_with_its_type() {
    let refuse = service_fn(|()| ready(Err::<(), _>("no route")));
    let failed = Timeout::new(refuse, LIMIT).oneshot(()).await.unwrap_err();
    assert_eq!(failed, TimeoutError::Service("no route"));
    assert_eq!(failed.to_string(), "no route");

    let boxed = service_fn(|()| ready(Err::<(), BoxError>("no route".into())));
    let service = ServiceBuilder::new().map_err(BoxError::from).layer(TimeoutLayer::new(LIMIT));
    let failed = service.service(boxed).oneshot(()).await.unwrap_err();
    assert!(failed.downcast::<TimeoutError<BoxError>>().is_ok());
    let stuck = service_fn(|()| std::future::pending::<Result<(), BoxError>>());
    let failed = Timeout::new(stuck, ms(1)).oneshot(()).await.unwrap_err();
    assert_eq!(failed.to_string(), "deadline has elapsed");
}
