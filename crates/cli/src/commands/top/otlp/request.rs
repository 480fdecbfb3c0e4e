//! One POST over plain HTTP/1.1. A collector that is slow, or that answers without end, costs at most [`PATIENCE`] per part.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::endpoint::Endpoint;

/// How long to wait for a connection, for the request to be taken, and for the answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// Answers of collectors are shorter.
const LONGEST_ANSWER: usize = 8 << 10;

/// Sends the metrics. `Err` says what went wrong, in words of ours: what a server sends is not shown.
pub(super) fn post(endpoint: &Endpoint, body: &str) -> Result<(), String> {
    let answer = exchange(endpoint, body).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("no answer within {} s", PATIENCE.as_secs())
        }
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        _ => error.to_string().split(" (os error").next().unwrap_or_default().to_owned(),
    })?;
    verdict(&answer)
}

fn exchange(endpoint: &Endpoint, body: &str) -> io::Result<String> {
    let mut connection = connect(endpoint)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: busbound/{}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        endpoint.path,
        endpoint.host,
        endpoint.port,
        env!("CARGO_PKG_VERSION"),
        body.len()
    );
    let deadline = Instant::now() + PATIENCE;
    for piece in [head.as_bytes(), body.as_bytes()].iter().flat_map(|part| part.chunks(LONGEST_ANSWER)) {
        connection.write_all(piece)?;
        if Instant::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    answer(&mut connection)
}

/// The first of the host's addresses that takes a connection.
fn connect(endpoint: &Endpoint) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the host has no address");
    let deadline = Instant::now() + PATIENCE;
    for address in endpoint.address().to_socket_addrs()? {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(connection) => return Ok(connection),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Until the server closes the connection, has sent what it announced, or enough of it.
fn answer(connection: &mut TcpStream) -> io::Result<String> {
    let deadline = Instant::now() + PATIENCE;
    let (mut bytes, mut piece) = (Vec::new(), [0; 1024]);
    while bytes.len() < LONGEST_ANSWER && !is_complete(&bytes) {
        if Instant::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match connection.read(&mut piece)? {
            0 => break,
            read => bytes.extend_from_slice(&piece[..read]),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_complete(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    length.is_some_and(|length| body.len() >= length)
}

fn verdict(answer: &str) -> Result<(), String> {
    let mut words = answer.split_whitespace();
    let is_http = words.next().is_some_and(|version| version.starts_with("HTTP/1."));
    let status = words.next().filter(|_| is_http).and_then(|status| status.parse::<u16>().ok());
    match status {
        Some(200..=299) => match rejected(answer) {
            0 => Ok(()),
            rejected => Err(format!("the collector rejected {rejected} of the values")),
        },
        Some(status) => Err(format!("the collector answered {status}")),
        None => Err("the answer is not HTTP: is this the port for OTLP over HTTP?".to_owned()),
    }
}

/// `{"partialSuccess": {"rejectedDataPoints": "3"}}`
fn rejected(answer: &str) -> u64 {
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let body = serde_json::from_str::<Value>(body).unwrap_or_default();
    let count = &body["partialSuccess"]["rejectedDataPoints"];
    count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_judged_by_their_status_and_by_what_was_rejected() {
        let partial = |count: &str| format!("HTTP/1.1 200 OK\r\n\r\n{{\"partialSuccess\": {{{count}}}}}");
        assert_eq!(verdict("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), Ok(()));
        assert_eq!(verdict("HTTP/1.0 202 Accepted\r\n\r\n"), Ok(()));
        assert_eq!(verdict(&partial("")), Ok(()));
        assert_eq!(verdict(&partial("\"rejectedDataPoints\": \"0\"")), Ok(()));
        for (answer, words) in [
            (partial("\"rejectedDataPoints\": \"3\"").as_str(), "rejected 3"),
            (&partial("\"rejectedDataPoints\": 4"), "rejected 4"),
            ("HTTP/1.1 404 Not Found\r\n\r\n", "answered 404"),
            ("HTTP/1.1 \x1b[2J\r\n\r\n", "not HTTP"),
            ("\0\0\x06\x04\0", "not HTTP"),
            ("", "not HTTP"),
        ] {
            assert!(verdict(answer).unwrap_err().contains(words), "{answer:?}");
        }
    }

    #[test]
    fn an_answer_is_complete_when_it_has_what_it_announced() {
        assert!(!is_complete(b"HTTP/1.1 200 OK\r\nContent-"));
        assert!(!is_complete(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}"));
        assert!(is_complete(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"));
        assert!(!is_complete(b"HTTP/1.1 200 OK\r\n\r\n"));
    }
}
