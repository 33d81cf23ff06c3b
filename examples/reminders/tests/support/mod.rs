//! A service to start, to ask and to end.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A running service.
pub(crate) struct Life {
    process: Child,
    pub(crate) address: SocketAddr,
}

impl Life {
    pub(crate) fn begin(folder: &Path, number: u64) -> Life {
        let mut process = Command::new(env!("CARGO_BIN_EXE_tickwheel-reminders"))
            .arg("--store")
            .arg(folder.join("reminders.redb"))
            .arg("--ledger")
            .arg(folder.join("ledger.txt"))
            .args(["--listen", "127.0.0.1:0", "--name", &number.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let said = lines.next().expect("the service does not start").unwrap();
        let address = said.strip_prefix("listening on ").unwrap();
        Life {
            process,
            address: address.parse().unwrap(),
        }
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
    let body = match head.contains("application/json") {
        true => serde_json::from_str(body).map_err(|_| torn())?,
        false => Value::from(body),
    };
    Ok((status.ok_or_else(torn)?, body))
}
