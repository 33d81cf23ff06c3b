//! The layer `tickwheel::time::tower::TimeoutLayer` in a stack of tower's.

use std::convert::Infallible;
use std::future::{pending, ready};
use std::time::{Duration, Instant};

use tickwheel::time::tower::{Timeout, TimeoutError, TimeoutLayer};
use tickwheel::time::{Timers, TimersClock};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt, service_fn};

const LIMIT: Duration = Duration::from_secs(30);

fn timers() -> (&'static Timers, TimersClock) {
    let (timers, clock) = Timers::builder().start_virtual().unwrap();
    (timers.leak(), clock)
}

#[tokio::test]
async fn a_call_that_never_ends_is_dropped_at_its_limit() {
    let (timers, clock) = timers();
    let stuck = service_fn(|_: ()| pending::<Result<(), Infallible>>());
    let service = ServiceBuilder::new().layer(TimeoutLayer::on(timers, LIMIT));
    let call = tokio::spawn(service.service(stuck).oneshot(()));
    while timers.ledger().live == 0 {
        tokio::task::yield_now().await;
    }
    clock.advance(LIMIT - Duration::from_nanos(1));
    tokio::task::yield_now().await;
    assert!(!call.is_finished());
    clock.advance(Duration::from_millis(1));
    let answer = tokio::time::timeout(Duration::from_secs(10), call).await;
    let failed = answer.unwrap().unwrap().unwrap_err();
    assert!(failed.is_elapsed(), "{failed}");
    assert_eq!(timers.ledger().live, 0);
}

#[tokio::test]
async fn a_call_that_is_ready_at_once_makes_no_timer() {
    let (timers, _clock) = timers();
    let echo = service_fn(|n: u32| ready(Ok::<_, Infallible>(n)));
    let mut service = ServiceBuilder::new()
        .layer(TimeoutLayer::on(timers, LIMIT))
        .service(echo);
    assert_eq!(service.ready().await.unwrap().call(7).await, Ok(7));
    assert_eq!(timers.ledger().accepted, 0);
}

#[tokio::test]
async fn an_answer_in_time_leaves_no_sleep_behind() {
    let (timers, clock) = timers();
    let slow = service_fn(move |n: u32| async move {
        timers.sleep(LIMIT / 2).await;
        Ok::<_, Infallible>(n)
    });
    let service = ServiceBuilder::new().layer(TimeoutLayer::on(timers, LIMIT));
    let call = tokio::spawn(service.service(slow).oneshot(7));
    while timers.ledger().live < 2 {
        tokio::task::yield_now().await;
    }
    clock.advance(LIMIT / 2);
    assert_eq!(call.await.unwrap(), Ok(7));
    assert_eq!(timers.ledger().live, 0);
}

#[tokio::test]
async fn an_error_of_the_service_comes_through_with_its_type() {
    let refuse = service_fn(|_: ()| ready(Err::<(), _>("no route")));
    let failed = Timeout::new(refuse, LIMIT).oneshot(()).await.unwrap_err();
    assert_eq!(failed, TimeoutError::Service("no route"));
    assert_eq!(failed.to_string(), "no route");
}

/// As every layer of tower's, it takes and gives errors that become a `BoxError`.
#[tokio::test]
async fn it_stands_between_layers_with_boxed_errors() {
    let stuck = service_fn(|_: ()| pending::<Result<(), BoxError>>());
    let limit = Duration::from_millis(20);
    let service = ServiceBuilder::new()
        .concurrency_limit(8)
        .layer(TimeoutLayer::new(limit))
        .concurrency_limit(8)
        .service(stuck);
    let begin = Instant::now();
    let failed: BoxError = service.oneshot(()).await.unwrap_err().into();
    assert!(begin.elapsed() >= limit);
    assert!(
        failed
            .downcast::<TimeoutError<BoxError>>()
            .unwrap()
            .is_elapsed()
    );
}

#[tokio::test]
async fn after_the_shutdown_of_its_timers_a_waiting_call_fails_and_says_so() {
    let (timers, _clock) = timers();
    let stuck = service_fn(|_: ()| pending::<Result<(), Infallible>>());
    let service = ServiceBuilder::new().layer(TimeoutLayer::on(timers, LIMIT));
    let call = tokio::spawn(service.service(stuck).oneshot(()));
    while timers.ledger().live == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(timers.shutdown(), 1);
    match call.await.unwrap() {
        Err(TimeoutError::Elapsed(elapsed)) => assert!(elapsed.is_shut_down()),
        other => panic!("{other:?}"),
    }
}
