//! Retries with backon, which takes any function from a delay to a future: a client
//! whose server starts 200 ms after the first attempt.
//!
//! ```text
//! cargo run -p tickwheel-await-examples --bin backon
//! ```

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use backon::{ExponentialBuilder, Retryable};
use smol::net::{TcpListener, TcpStream};
use tickwheel::time::sleep;

const DOWN_FOR: Duration = Duration::from_millis(200);

fn main() -> io::Result<()> {
    smol::block_on(async {
        let address = free_address()?;
        let (begin, mut server) = (Instant::now(), None);
        let policy = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(20))
            .with_max_times(10);
        let mut attempts = 1;
        let _connection = (|| TcpStream::connect(address))
            .retry(policy)
            .sleep(sleep)
            .when(|error| error.kind() == io::ErrorKind::ConnectionRefused)
            .notify(|error, delay| {
                println!("attempt {attempts}: {error}; the next in {delay:?}");
                attempts += 1;
                server.get_or_insert_with(|| smol::spawn(start_late(address)));
            })
            .await?;
        println!("connected at attempt {attempts}, after {:?}", begin.elapsed());
        assert!(attempts > 1 && begin.elapsed() >= DOWN_FOR);
        server.expect("an attempt has failed").await.map(drop)
    })
}

/// Returns an address on which nobody listens yet.
fn free_address() -> io::Result<SocketAddr> {
    std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()
}

async fn start_late(address: SocketAddr) -> io::Result<TcpStream> {
    sleep(DOWN_FOR).await;
    let listener = TcpListener::bind(address).await?;
    listener.accept().await.map(|(stream, _)| stream)
}
