//! A gateway on smol, without tokio: every connection answers lines, and is closed when
//! its client has been silent for a second. An `interval` prints how it goes.
//!
//! ```text
//! cargo run -p tickwheel-await-examples --bin smol
//! ```

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use smol::future;
use smol::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use smol::net::{TcpListener, TcpStream};
use smol::stream::StreamExt;
use tickwheel::time::{Global, interval, sleep, timeout};

const SILENCE: Duration = Duration::from_secs(1);
const CLIENTS: u32 = 50;

fn main() -> io::Result<()> {
    smol::block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let _gateway = smol::spawn(serve(listener));
        let _progress = smol::spawn(progress());
        let clients: Vec<_> =
            (1..=CLIENTS).map(|number| smol::spawn(client(address, number % 5))).collect();
        for client in clients {
            // Nobody waits for ever for a client.
            timeout(Duration::from_secs(10), client).await??;
        }
        println!("all {CLIENTS} clients were closed in time");
        Ok(())
    })
}

async fn progress() {
    let mut ticks = interval(Duration::from_millis(250));
    loop {
        ticks.tick().await;
        println!("{} timers wait", Global.snapshot().ledger.live);
    }
}

async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        smol::spawn(answer(stream)).detach();
    }
}

/// Sends every line back, until the client is silent. One sleep serves the whole
/// connection: each line postpones it.
async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut lines = BufReader::new(stream.clone()).lines();
    let mut silence = sleep(SILENCE);
    loop {
        let silent = async {
            (&mut silence).await;
            None
        };
        let Some(line) = future::or(lines.next(), silent).await else {
            return Ok(());
        };
        silence.reset(SILENCE);
        stream.write_all((line? + "\n").as_bytes()).await?;
    }
}

/// Sends a few lines, 50 ms apart, and then waits to be closed.
async fn client(address: SocketAddr, lines: u32) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    let mut last = Instant::now();
    for _ in 0..lines {
        sleep(Duration::from_millis(50)).await;
        last = Instant::now();
        stream.write_all(b"ping\n").await?;
    }
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await?;
    assert_eq!(answers.lines().count(), lines as usize);
    // Without a line, the connection itself was the last sign of life.
    assert!(lines == 0 || last.elapsed() >= SILENCE);
    Ok(())
}
