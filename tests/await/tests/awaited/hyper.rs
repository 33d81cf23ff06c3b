//! hyper's server with the timers of this crate.

use super::*;
use ::hyper::rt::Timer;
use ::hyper::server::conn::http1::Builder;
use ::hyper::service::service_fn;
use ::hyper::{Request, Response, Result};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use tickwheel::time::Global;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

async fn hello<B>(_request: Request<B>) -> std::result::Result<Response<String>, Infallible> {
    Ok(Response::new("hello".to_string()))
}

/// Serves one connection, with a limit of an hour for each head.
fn serve(timers: &'static Timers) -> (DuplexStream, JoinHandle<Result<()>>) {
    let (client, server) = tokio::io::duplex(1_000);
    let mut builder = Builder::new();
    builder.timer(timers).header_read_timeout(HOUR);
    let serving = builder.serve_connection(TokioIo::new(server), service_fn(hello));
    (client, tokio::spawn(serving))
}

/// hyper asks the timer for the time, so a server runs on a virtual clock.
#[tokio::test]
async fn on_a_virtual_clock_an_hour_for_the_head_passes_at_once() {
    let clock = VirtualClock::starting_at(Time::from_secs(86_400));
    let timers = Timers::builder().start_on(&clock).unwrap();
    let timers = timers.leak();
    let now = Timer::now(&timers);
    thread::sleep(ms(2));
    assert_eq!(Timer::now(&timers), now);
    ends_at(&mut ByHand::new(Timer::sleep_until(&timers, now + HOUR)), &clock, 90_000_000);
    ends_at(&mut ByHand::new(Timer::sleep(&timers, HOUR)), &clock, 93_600_000);
    let (mut client, served) = serve(timers);
    client.write_all(b"GET / HTTP/1.1\r\nHost:").await.unwrap();
    while timers.ledger().live == 0 {
        yield_now().await;
    }
    clock.advance(HOUR - ms(10));
    for _ in 0..9 {
        yield_now().await;
    }
    assert!(!served.is_finished());
    clock.advance(ms(11));
    assert!(served.await.unwrap().unwrap_err().is_timeout());
    assert_eq!(timers.ledger().live, 0);
}

#[tokio::test]
async fn requests_on_one_connection_leave_no_sleep_behind() {
    let timers = Timers::builder().start().unwrap().leak();
    let (mut client, served) = serve(timers);
    for _ in 0..100 {
        let request = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n";
        client.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"hello") {
            assert!(client.read_buf(&mut answer).await.unwrap() > 0);
        }
    }
    // At most one: the wait for the next head.
    assert!(timers.ledger().live <= 1, "{:?}", timers.ledger());
    drop(client);
    served.await.unwrap().unwrap();
    assert!(timers.ledger().accepted >= 1);
    assert_eq!(timers.ledger().live, 0);
}

/// hyper may hand in a sleep of another timer.
#[tokio::test]
async fn a_reset_moves_a_sleep_of_its_own_and_replaces_another() {
    let timers: &'static Timers = Timers::builder().start().unwrap().leak();
    assert_eq!(&*Global.snapshot().name, "global");
    let all = [&timers as &dyn Timer, &Global];
    for (timer, other) in [(all[0], all[1]), (all[1], all[0])] {
        let begin = Instant::now();
        timer.sleep(ms(5)).await;
        assert!(begin.elapsed() >= ms(5));
        for mut sleep in [timer.sleep_until(begin + HOUR), other.sleep(HOUR)] {
            let soon = Instant::now() + ms(10);
            timer.reset(&mut sleep, soon);
            tokio::time::timeout(PATIENCE, sleep).await.unwrap();
            assert!(Instant::now() >= soon);
        }
    }
    assert_eq!(timers.ledger().live, 0);
}
