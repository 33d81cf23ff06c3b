//! A TCP server that answers each line one second later, for any number of
//! clients, without a thread per request: a timer's payload holds the line and
//! its connection. A client beside it measures how late the replies are.
//!
//! ```text
//! cargo run --release -p tickwheel-socket-examples --bin delayed_reply      # both, 400 connections
//! cargo run --release -p tickwheel-socket-examples --bin delayed_reply -- serve 127.0.0.1:7007
//! cargo run --release -p tickwheel-socket-examples --bin delayed_reply -- load 127.0.0.1:7007 10000
//! ```
//!
//! All use of timers is in `server.rs`; the rest is sockets. Each connection is an
//! open file: with more than some hundreds, raise the limit first (`ulimit -n`).

#[cfg(unix)]
mod load;
#[cfg(unix)]
mod server;

/// The time from a line to its reply.
#[cfg(unix)]
const DELAY: std::time::Duration = std::time::Duration::from_secs(1);

#[cfg(unix)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => unix::serve_and_load(),
        ["serve", address] => unix::serve_only(address),
        ["load", address, connections] => unix::load_only(address.parse()?, connections.parse()?),
        _ => Err("usage: delayed_reply [serve ADDR | load ADDR CONNECTIONS]".into()),
    }
}

#[cfg(not(unix))]
fn main() {
    eprintln!("this example waits for its sockets with mio, which it asks for on Unix only");
}

#[cfg(unix)]
mod unix {
    use std::error::Error;
    use std::net::{SocketAddr, TcpListener};
    use std::{process, thread};

    use tickwheel::{Engine, StartError};

    use crate::load::{Delays, load};
    use crate::server::{Reply, serve};

    /// Both ends of each are open in this process, within the usual limit of
    /// 1,024 files.
    const CONNECTIONS: usize = 400;

    pub fn serve_and_load() -> Result<(), Box<dyn Error>> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let engine = start()?;

        let shared = engine.clone();
        thread::spawn(move || {
            if let Err(error) = serve(listener, &shared) {
                eprintln!("the server has failed: {error}");
                process::exit(1);
            }
        });
        println!("{CONNECTIONS} connections to {address}, a line on each");
        let delays = load(address, CONNECTIONS)?;
        report(&delays)?;

        let left = engine.shutdown();
        let ledger = engine.ledger();
        println!(
            "timers: {} accepted, {} completed, {} left",
            ledger.accepted,
            ledger.completed,
            left.len()
        );
        if ledger.is_balanced() && ledger.completed == delays.len() as u64 {
            Ok(())
        } else {
            Err("the ledger does not balance".into())
        }
    }

    pub fn serve_only(address: &str) -> Result<(), Box<dyn Error>> {
        let listener = TcpListener::bind(address)?;
        println!("serving {}", listener.local_addr()?);
        Ok(serve(listener, &start()?)?)
    }

    pub fn load_only(address: SocketAddr, connections: usize) -> Result<(), Box<dyn Error>> {
        report(&load(address, connections)?)
    }

    /// Starts an engine that bounds the replies in flight. Beyond the bound, the
    /// server cuts connections off.
    fn start() -> Result<Engine<Reply>, StartError> {
        Engine::builder().max_timers(1_000_000).start()
    }

    fn report(delays: &Delays) -> Result<(), Box<dyn Error>> {
        println!("{delays}");
        if delays.any_early() { Err("a reply was early".into()) } else { Ok(()) }
    }
}
