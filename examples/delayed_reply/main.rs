//! A TCP server that answers each line one second later, without a thread per
//! request: the line and its connection wait as the payload of a timer. With
//! it, a client that measures how late the answers are.
//!
//! ```text
//! cargo run --release --example delayed_reply                            # both, 1,000 connections
//! cargo run --release --example delayed_reply -- serve 127.0.0.1:7007
//! cargo run --release --example delayed_reply -- load 127.0.0.1:7007 500
//! ```
//!
//! What has to do with timers is in `server.rs`; the rest is sockets.

#[cfg(target_os = "linux")]
mod epoll;
#[cfg(target_os = "linux")]
mod load;
#[cfg(target_os = "linux")]
mod server;

#[cfg(target_os = "linux")]
const DELAY: std::time::Duration = std::time::Duration::from_secs(1);

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => linux::serve_and_load(),
        ["serve", address] => linux::serve_only(address),
        ["load", address, connections] => linux::load_only(address.parse()?, connections.parse()?),
        _ => Err("usage: delayed_reply [serve ADDR | load ADDR CONNECTIONS]".into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("this example waits for its sockets with epoll, which needs Linux");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::net::{SocketAddr, TcpListener};
    use std::{process, thread};

    use tickwheel::{Engine, StartError};

    use crate::epoll::raise_descriptor_limit;
    use crate::load::{Delays, load};
    use crate::server::{Reply, serve};

    const CONNECTIONS: usize = 1_000;

    /// Descriptors that are no connections: standard streams, epoll, the
    /// ticker's timerfd.
    const SPARE: usize = 32;

    pub fn serve_and_load() -> Result<(), Box<dyn Error>> {
        // Both ends of a connection are open in this process.
        let connections = within_limit(CONNECTIONS, 2)?;
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let engine = start()?;

        let shared = engine.clone();
        thread::spawn(move || {
            if let Err(error) = serve(&listener, &shared) {
                eprintln!("the server has failed: {error}");
                process::exit(1);
            }
        });
        println!("{connections} connections to {address}, a line on each");
        let delays = load(address, connections)?;
        report(&delays)?;

        let left = engine.shutdown();
        let ledger = engine.ledger();
        println!(
            "timers: {} accepted, {} completed, {} left",
            ledger.accepted,
            ledger.completed,
            left.len()
        );
        match ledger.is_balanced() && ledger.completed == delays.len() as u64 {
            true => Ok(()),
            false => Err("the ledger says otherwise".into()),
        }
    }

    pub fn serve_only(address: &str) -> Result<(), Box<dyn Error>> {
        raise_descriptor_limit()?;
        let listener = TcpListener::bind(address)?;
        println!("serving {}", listener.local_addr()?);
        Ok(serve(&listener, &start()?)?)
    }

    pub fn load_only(address: SocketAddr, connections: usize) -> Result<(), Box<dyn Error>> {
        report(&load(address, within_limit(connections, 1)?)?)
    }

    /// A bound on replies in flight: beyond it, connections are cut off.
    fn start() -> Result<Engine<Reply>, StartError> {
        Engine::builder().max_timers(1_000_000).start()
    }

    fn report(delays: &Delays) -> Result<(), Box<dyn Error>> {
        println!("{delays}");
        match delays.any_early() {
            true => Err("a reply was early".into()),
            false => Ok(()),
        }
    }

    /// As many connections as are wanted, or as there are descriptors for.
    fn within_limit(wanted: usize, descriptors_each: usize) -> Result<usize, Box<dyn Error>> {
        let limit = raise_descriptor_limit()?;
        let possible = limit.saturating_sub(SPARE) / descriptors_each;
        if possible == 0 {
            return Err(format!("no room for connections among {limit} descriptors").into());
        }
        if possible < wanted {
            println!("{limit} descriptors are allowed: {possible} connections, not {wanted}");
        }
        Ok(wanted.min(possible))
    }
}
