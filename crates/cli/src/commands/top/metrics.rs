//! How does a Prometheus server get the figures? `GET /metrics` over plain HTTP, one request per connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// A client that takes longer to ask or to read gets no answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Requests for metrics are shorter.
const LONGEST_REQUEST: usize = 8 << 10;

/// The figures of the last interval, served by a thread until the process ends.
pub(super) struct Metrics {
    address: SocketAddr,
    text: Arc<Mutex<Option<String>>>,
}

impl Metrics {
    /// Whether the address is one.
    pub(super) fn check(address: &str) -> Result<(), Failure> {
        let has_port = address
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        if has_port {
            return Ok(());
        }
        let why = "give an address and a port, such as 127.0.0.1:9401";
        Err(Failure::usage(format!("cannot serve metrics at {address}: {why}")))
    }

    pub(super) fn serve(address: &str) -> Result<Self, Failure> {
        let cannot =
            |error: std::io::Error| Failure::usage(format!("cannot serve metrics at {address}: {error}"));
        let listener = TcpListener::bind(address).map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        let text = Arc::new(Mutex::new(None));
        let shared = Arc::clone(&text);
        let serve = move || {
            for connection in listener.incoming() {
                match connection {
                    // A client that disconnects is no error of ours.
                    Ok(connection) => drop(answer(connection, &shared)),
                    // Mostly too many open files: trying again immediately does not help.
                    Err(_) => std::thread::sleep(Duration::from_millis(100)),
                }
            }
        };
        std::thread::Builder::new().name("metrics".to_owned()).spawn(serve).map_err(cannot)?;
        Ok(Self { address: bound, text })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn publish(&self, text: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }
}

fn answer(mut connection: TcpStream, text: &Mutex<Option<String>>) -> std::io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let request = request(&mut connection)?;
    let text = text.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (status, body) = respond(&request, text);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes())?;
    connection.write_all(body.as_bytes())
}

/// Reads the whole request: closing a connection with unread data resets it, and the answer is lost.
fn request(connection: &mut TcpStream) -> std::io::Result<String> {
    let deadline = Instant::now() + PATIENCE;
    let (mut bytes, mut piece) = (Vec::new(), [0; 1024]);
    while !bytes.ends_with(b"\r\n\r\n") && bytes.len() < LONGEST_REQUEST && Instant::now() < deadline {
        match connection.read(&mut piece)? {
            0 => break,
            read => bytes.extend_from_slice(&piece[..read]),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn respond(request: &str, text: Option<String>) -> (&'static str, String) {
    let mut words = request.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match (method, path.split('?').next().unwrap_or_default(), text) {
        ("GET", "/metrics", Some(text)) => ("200 OK", text),
        ("GET", "/metrics", None) => ("503 Service Unavailable", "no interval has passed yet\n".to_owned()),
        ("GET", ..) => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "only GET is supported\n".to_owned()),
    }
}
