//! A service to start, to ask and to end.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// Where services keep reminders.
pub(crate) struct Place {
    folder: PathBuf,
    store: Option<String>,
}

impl Place {
    /// Returns a place with a file of its own in the folder, or with this store.
    pub(crate) fn new(folder: &Path, store: Option<String>) -> Place {
        let folder = folder.to_owned();
        Place { folder, store }
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.folder.join("ledger.txt")
    }

    /// Returns the log of a process.
    pub(crate) fn log(&self, number: u64) -> PathBuf {
        self.folder.join(format!("log.{number}"))
    }

    fn store(&self) -> String {
        let file = self.folder.join("reminders.redb").display().to_string();
        self.store.clone().unwrap_or(file)
    }

    /// Returns a schema that no other test uses, in a database.
    fn schema(&self) -> String {
        format!("reminders_{}", std::process::id())
    }
}

/// A running service.
pub(crate) struct Life {
    process: Child,
    pub(crate) address: SocketAddr,
    #[allow(dead_code, reason = "one of two tests has several")]
    pub(crate) name: String,
    #[allow(dead_code, reason = "one of two tests has several")]
    pub(crate) number: u64,
}

impl Life {
    /// Starts a process of the node with this name.
    pub(crate) fn begin(place: &Place, name: &str, number: u64) -> Life {
        let log = File::create(place.log(number)).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_tickwheel-reminders"))
            .args(["--listen", "127.0.0.1:0", "--lease", "3", "--name", name])
            .args(["--store", &place.store(), "--schema", &place.schema()])
            .args(["--life", &number.to_string(), "--ledger"])
            .arg(place.ledger())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let said = lines.next().map(Result::unwrap).unwrap_or_else(|| {
            let log = fs::read_to_string(place.log(number));
            panic!("the service does not start: {log:?}")
        });
        let address = said.strip_prefix("listening on ").unwrap();
        Life { process, address: address.parse().unwrap(), name: name.to_owned(), number }
    }

    /// Sends SIGTERM, and waits for the end. Returns whether it was a success.
    #[allow(dead_code, reason = "one of two tests ends it so")]
    pub(crate) fn end(mut self) -> bool {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.unwrap().success());
        self.process.wait().unwrap().success()
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(self) {
        drop(self);
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends a request, and returns the status and the body of the answer. Fails if the service was
/// killed before the whole answer was there.
pub(crate) fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    body: &str,
) -> io::Result<(u16, Value)> {
    let mut stream = TcpStream::connect(address)?;
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: reminders\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let torn = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(torn)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body = if head.contains("application/json") {
        serde_json::from_str(body).map_err(|_| torn())?
    } else {
        Value::from(body)
    };
    Ok((status.ok_or_else(torn)?, body))
}
