//! A client that tries again, with a limit for each try and a growing pause.

use super::time::error::Elapsed;
use super::time::{Duration, Instant, sleep, sleep_until, timeout, timeout_at};
use std::error::Error;
use std::{fmt, io};

const LIMIT: Duration = Duration::from_millis(20);
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// What a server does at each request: it answers, refuses, or keeps silent.
struct Server(std::slice::Iter<'static, &'static str>);

impl Server {
    fn new(answers: &'static [&'static str]) -> Server {
        Server(answers.iter())
    }

    async fn request(&mut self) -> io::Result<&'static str> {
        match self.0.next().copied() {
            Some("answer") => Ok("answered"),
            Some("refusal") => Err(io::ErrorKind::ConnectionRefused.into()),
            _ => std::future::pending().await,
        }
    }
}

#[derive(Debug)]
enum Failure {
    TooSlow(Elapsed),
    Io(io::Error),
}

impl From<Elapsed> for Failure {
    fn from(elapsed: Elapsed) -> Failure {
        Failure::TooSlow(elapsed)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::TooSlow(elapsed) => write!(f, "too slow: {elapsed}"),
            Failure::Io(error) => write!(f, "{error}"),
        }
    }
}

impl Error for Failure {}

async fn request(server: &mut Server) -> Result<&'static str, Failure> {
    Ok(timeout(LIMIT, server.request()).await??)
}

/// As `request`, for callers that know only one error.
async fn request_io(server: &mut Server) -> io::Result<&'static str> {
    timeout(LIMIT, server.request()).await?
}

/// As `request`, for callers that know any error.
async fn request_any(server: &mut Server) -> Result<&'static str, Box<dyn Error + Send + Sync>> {
    Ok(timeout(LIMIT, server.request()).await??)
}

/// Fetches from a server, four times at most. Returns what happened at each try.
pub async fn fetches(answers: &'static [&'static str]) -> Vec<String> {
    let mut server = Server::new(answers);
    let mut log = Vec::new();
    let mut pause = FIRST_PAUSE;
    for _ in 0..4 {
        match request(&mut server).await {
            Ok(answer) => {
                log.push(answer.to_string());
                return log;
            }
            Err(failure) => log.push(failure.to_string()),
        }
        sleep(pause).await;
        pause = (pause * 2).min(LIMIT);
    }
    log.push("gave up".into());
    log
}

/// The kinds of error that callers of the other forms see.
pub async fn fails_in_other_ways() -> Vec<String> {
    let io = request_io(&mut Server::new(&[])).await.unwrap_err();
    let any = request_any(&mut Server::new(&[])).await.unwrap_err();
    let is_elapsed = any.downcast_ref::<Elapsed>().is_some();
    vec![format!("{:?}", io.kind()), is_elapsed.to_string()]
}

/// Fetches until a deadline, however many tries that takes.
pub async fn fetches_by_a_deadline(answers: &'static [&'static str]) -> Vec<String> {
    let deadline = Instant::now() + 3 * LIMIT;
    let mut server = Server::new(answers);
    let tries = async {
        loop {
            let begin = Instant::now();
            if let Ok(answer) = request(&mut server).await {
                return answer;
            }
            // Not more often than this.
            sleep_until(begin + LIMIT).await;
        }
    };
    let result = timeout_at(deadline, tries).await;
    let late = result.is_err() && Instant::now() >= deadline;
    vec![result.map_or(format!("late: {late}"), str::to_string)]
}
