//! Named timers in an HTTP server: it answers each request one second later,
//! unless another request cancels it by name. Four threads accept and read, and
//! the engine's worker answers. No thread waits for the second to pass.
//!
//! ```text
//! cargo run --release --example delayed_http                                # tries itself out
//! cargo run --release --example delayed_http -- serve 127.0.0.1:8888
//! curl '127.0.0.1:8888/delay?name=Ada' &
//! curl '127.0.0.1:8888/cancel?name=Ada'
//! ```

use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::{CloseReason, Firing, TaskEngine, Timer};

const DELAY: Duration = Duration::from_secs(1);

/// The number of threads that accept connections and read requests.
const THREADS: usize = 4;

/// The most requests that wait at any time.
const MOST_WAITING: usize = 10_000;

/// The most time and the most bytes for a client's request.
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST_REQUEST: usize = 8 * 1_024;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => try_out(),
        ["serve", address] => serve_for_ever(address),
        _ => Err("usage: delayed_http [serve ADDR]".into()),
    }
}

fn serve_for_ever(address: &str) -> Result<(), Box<dyn Error>> {
    let tasks = start_engine()?;
    let (address, threads) = serve(address, &tasks)?;
    println!("answering on http://{address}/delay?name=NAME");
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked")?;
    }
    Ok(())
}

fn start_engine() -> Result<TaskEngine, Box<dyn Error>> {
    Ok(TaskEngine::builder().max_timers(MOST_WAITING).start()?)
}

/// Starts the serving threads, and returns their address.
fn serve(
    address: &str,
    tasks: &TaskEngine,
) -> io::Result<(SocketAddr, Vec<thread::JoinHandle<()>>)> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    let start = |_| {
        let (listener, tasks) = (listener.try_clone()?, tasks.clone());
        Ok(thread::spawn(move || accept(&listener, &tasks)))
    };
    let threads = (0..THREADS).map(start).collect::<io::Result<_>>()?;
    Ok((address, threads))
}

fn accept(listener: &TcpListener, tasks: &TaskEngine) {
    loop {
        match listener.accept() {
            // An error concerns this client alone.
            Ok((client, _)) => drop(handle(client, tasks)),
            // Most likely there are too many open descriptors.
            Err(error) => {
                eprintln!("cannot accept: {error}");
                thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

/// Reads a request, and answers it now or by a timer.
fn handle(mut client: TcpStream, tasks: &TaskEngine) -> io::Result<()> {
    client.set_write_timeout(Some(PATIENCE))?;
    let request = read_request(&mut client)?;
    match route(&request) {
        Route::Delay(name) => delay(client, name, tasks),
        Route::Cancel(name) => {
            let count = tasks.cancel_by_name(name, None).len();
            answer(&client, "200 OK", &format!("{count} cancelled\n"))
        }
        Route::Unknown => {
            let usage = "GET /delay?name=NAME or /cancel?name=NAME\n";
            answer(&client, "404 Not Found", usage)
        }
    }
}

/// Answers one second later, or as soon as the timer is cancelled. The timer is
/// `notified`, so the task runs once either way.
fn delay(client: TcpStream, name: &str, tasks: &TaskEngine) -> io::Result<()> {
    let client = Arc::new(client);
    let waiting = Arc::clone(&client);
    let task = move |firing: Firing| {
        let (status, text) = match firing.outcome() {
            CloseReason::Completed => ("200 OK", "done\n"),
            CloseReason::Cancelled => ("409 Conflict", "cancelled\n"),
            _ => ("503 Service Unavailable", "shut down\n"),
        };
        // The client may have closed its connection.
        let _ = answer(&waiting, status, text);
    };
    match tasks.run(Timer::after(DELAY, task).named(name).notified()) {
        Ok(_) => Ok(()),
        Err(refusal) => {
            let text = format!("{refusal}\n");
            answer(&client, "503 Service Unavailable", &text)
        }
    }
}

/// Reads up to the empty line that ends a request without a body.
fn read_request(client: &mut TcpStream) -> io::Result<String> {
    let begun = Instant::now();
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = PATIENCE.saturating_sub(begun.elapsed());
        if left.is_zero() || request.len() > LONGEST_REQUEST {
            return Err(ErrorKind::InvalidData.into());
        }
        client.set_read_timeout(Some(left))?;
        let mut buffer = [0; 1_024];
        match client.read(&mut buffer)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            len => request.extend_from_slice(&buffer[..len]),
        }
    }
    String::from_utf8(request).map_err(|_| ErrorKind::InvalidData.into())
}

enum Route<'a> {
    Delay(&'a str),
    Cancel(&'a str),
    Unknown,
}

fn route(request: &str) -> Route<'_> {
    let mut words = request.split(' ');
    let (Some("GET"), Some(target)) = (words.next(), words.next()) else {
        return Route::Unknown;
    };
    match target.split_once("?name=") {
        Some(("/delay", name)) => Route::Delay(name),
        Some(("/cancel", name)) => Route::Cancel(name),
        _ => Route::Unknown,
    }
}

fn answer(mut client: &TcpStream, status: &str, text: &str) -> io::Result<()> {
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{text}",
        text.len()
    );
    client.write_all(answer.as_bytes())
}

/// Sends twenty requests and cancels half of them by name.
fn try_out() -> Result<(), Box<dyn Error>> {
    const REQUESTS: usize = 20;
    let tasks = start_engine()?;
    let (address, _) = serve("127.0.0.1:0", &tasks)?;

    let begun = Instant::now();
    let mut clients = Vec::new();
    for number in 0..REQUESTS {
        let name = ["keep", "drop"][number % 2];
        clients.push((name, request(address, &format!("/delay?name={name}"))?));
    }
    // Repeats until all are cancelled: the server may not have read some yet.
    let mut cancelled = 0;
    while cancelled < REQUESTS / 2 && begun.elapsed() < DELAY {
        let (_, text) = receive(request(address, "/cancel?name=drop")?)?;
        let count = text.split(' ').next().unwrap_or_default();
        cancelled += count.parse::<usize>()?;
    }

    // The cancelled requests are answered already.
    clients.sort_by_key(|&(name, _)| name);
    let (mut done, mut conflicts, mut soonest) = (0, 0, Duration::MAX);
    for (name, client) in clients {
        let (status, text) = receive(client)?;
        match (name, status.as_str(), text.as_str()) {
            (_, "200", "done\n") => {
                done += 1;
                soonest = soonest.min(begun.elapsed());
            }
            ("drop", "409", "cancelled\n") => {
                conflicts += 1;
                if conflicts == cancelled {
                    println!("{conflicts} cancelled after {} ms", begun.elapsed().as_millis());
                }
            }
            _ => return Err(format!("{name} was answered {status} {text:?}").into()),
        }
    }
    let (first, last) = (soonest.as_millis(), begun.elapsed().as_millis());
    println!("{done} done after {first} to {last} ms");

    if conflicts != cancelled || conflicts + done != REQUESTS || conflicts == 0 || soonest < DELAY {
        return Err(format!("{cancelled} of {REQUESTS} were cancelled").into());
    }
    match receive(request(address, "/else")?)? {
        (status, _) if status == "404" => {}
        (status, _) => return Err(format!("an unknown path was answered {status}").into()),
    }
    tasks.shutdown();
    if tasks.ledger().is_balanced() { Ok(()) } else { Err("the ledger is not balanced".into()) }
}

fn request(address: SocketAddr, target: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(10 * DELAY))?;
    let request = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    Ok(stream)
}

/// Returns the status and the text of an answer.
fn receive(mut stream: TcpStream) -> Result<(String, String), Box<dyn Error>> {
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, text) = answer.split_once("\r\n\r\n").ok_or("an answer without an end")?;
    let status = head.split(' ').nth(1).ok_or("an answer without a status")?;
    Ok((status.to_owned(), text.to_owned()))
}
