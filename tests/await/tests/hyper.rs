//! hyper's servers and clients with the timers of this crate: real connections on
//! loopback, and one server on a virtual clock.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::rt::Timer;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tickwheel::Time;
use tickwheel::time::{Global, Timers};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, yield_now};

const PING: Duration = Duration::from_millis(50);

/// The time after which something has not happened.
const PATIENCE: Duration = Duration::from_secs(10);

type Served = JoinHandle<hyper::Result<()>>;

async fn hello<B>(_request: Request<B>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(b"hello"))))
}

/// Connects to an HTTP/1 server for one connection.
async fn connect_to_server(
    timer: impl Timer + Send + Sync + 'static,
    header_limit: Duration,
) -> (TcpStream, Served) {
    let (client, server) = connection().await;
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(timer).header_read_timeout(header_limit);
    let serving = builder.serve_connection(TokioIo::new(server), service_fn(hello));
    (client, tokio::spawn(serving))
}

async fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (client, server) = tokio::join!(TcpStream::connect(address), listener.accept());
    (client.unwrap(), server.unwrap().0)
}

/// Sends half a head, and waits until the server closes the connection.
async fn stall(mut client: TcpStream) {
    client.write_all(b"GET / HTTP/1.1\r\nHost:").await.unwrap();
    let mut rest = Vec::new();
    let _ = client.read_to_end(&mut rest).await;
}

/// The only test of this file that waits on the process-wide timers.
#[tokio::test]
async fn a_stalled_head_closes_its_connection_and_leaves_no_sleep_behind() {
    let limit = Duration::from_millis(200);
    let begin = Instant::now();
    let (client, served) = connect_to_server(Global, limit).await;
    stall(client).await;
    assert!(begin.elapsed() >= limit);
    assert!(served.await.unwrap().unwrap_err().is_timeout());
    assert_eq!(Global.snapshot().ledger.live, 0);
}

#[tokio::test]
async fn requests_on_one_connection_leave_no_sleep_behind() {
    let timers = Timers::builder().start().unwrap().leak();
    let (stream, served) = connect_to_server(timers, Duration::from_secs(30)).await;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    let client = tokio::spawn(connection);
    for _ in 0..100 {
        let request = Request::get("/").body(Empty::<Bytes>::new()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap();
        assert_eq!(body.to_bytes(), "hello");
        sender.ready().await.unwrap();
    }
    // At most one: the wait for the next head.
    assert!(timers.ledger().live <= 1, "{:?}", timers.ledger());
    drop(sender);
    client.await.unwrap().unwrap();
    served.await.unwrap().unwrap();
    assert!(timers.ledger().accepted >= 1);
    assert_eq!(timers.ledger().live, 0);
}

/// hyper asks the timer for the time, so a server runs on a virtual clock.
#[tokio::test]
async fn on_a_virtual_clock_an_hour_for_the_head_passes_at_once() {
    let hour = Duration::from_secs(3_600);
    let (timers, clock) = Timers::builder()
        .start_at(Time::from_secs(86_400))
        .start_virtual()
        .unwrap();
    let timers = timers.leak();
    let (client, mut served) = connect_to_server(timers, hour).await;
    let client = tokio::spawn(stall(client));
    while timers.ledger().live == 0 && !served.is_finished() {
        yield_now().await;
    }
    clock.advance(hour - Duration::from_millis(10));
    let early = tokio::time::timeout(Duration::from_millis(20), &mut served);
    assert!(early.await.is_err());
    clock.advance(Duration::from_millis(11));
    let closed = tokio::time::timeout(PATIENCE, served).await;
    assert!(closed.unwrap().unwrap().unwrap_err().is_timeout());
    client.await.unwrap();
    assert_eq!(timers.ledger().live, 0);
}

/// Starts an HTTP/2 client that pings its server every 50 ms, and gives it up if no answer
/// comes within `answer`. Returns its connection's end.
async fn pinging_client(
    stream: TcpStream,
    timers: &'static Timers,
    answer: Duration,
) -> (
    hyper::client::conn::http2::SendRequest<Empty<Bytes>>,
    Served,
) {
    let (sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .timer(timers)
        .keep_alive_interval(PING)
        .keep_alive_timeout(answer)
        .keep_alive_while_idle(true)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    (sender, tokio::spawn(connection))
}

#[tokio::test]
async fn a_client_gives_up_a_server_that_does_not_answer_its_pings() {
    let timers = Timers::builder().start().unwrap().leak();
    let (client, _silent) = connection().await;
    let (_sender, connected) = pinging_client(client, timers, PING).await;
    let failed = connected.await.unwrap().unwrap_err();
    assert!(failed.is_timeout(), "{failed:?}");
    assert_eq!(timers.ledger().live, 0);
}

#[tokio::test]
async fn a_client_keeps_a_server_that_answers_its_pings() {
    let timers = Timers::builder().start().unwrap().leak();
    let (client, server) = connection().await;
    let served = tokio::spawn(
        hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(timers)
            .serve_connection(TokioIo::new(server), service_fn(hello)),
    );
    let (mut sender, connected) = pinging_client(client, timers, 600 * PING).await;
    timers.sleep(Duration::from_millis(300)).await;
    let request = Request::get("http://localhost/")
        .body(Empty::new())
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(
        response.into_body().collect().await.unwrap().to_bytes(),
        "hello"
    );
    drop(sender);
    connected.await.unwrap().unwrap();
    served.await.unwrap().unwrap();
    assert_eq!(timers.ledger().live, 0);
}

/// hyper may hand in a sleep of another timer.
#[tokio::test]
async fn a_reset_moves_a_sleep_of_its_own_and_replaces_another() {
    let timers = Timers::builder().start().unwrap().leak();
    let far = Instant::now() + Duration::from_secs(3_600);
    let own = Timer::sleep_until(&timers, far);
    for mut sleep in [own, Timer::sleep_until(&Global, far)] {
        let soon = Instant::now() + Duration::from_millis(10);
        Timer::reset(&timers, &mut sleep, soon);
        tokio::time::timeout(PATIENCE, sleep).await.unwrap();
        assert!(Instant::now() >= soon);
    }
}
