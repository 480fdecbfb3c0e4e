//! A collector for OpenTelemetry: a real HTTP server that keeps what it is sent.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::Value;

/// One request.
pub(crate) struct Sent {
    /// Request line and headers.
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Sent {
    /// Names, labels and values in the notation of Prometheus.
    pub(crate) fn series(&self) -> Vec<String> {
        let metrics = self.body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
        let mut series = Vec::new();
        for metric in metrics {
            let data = metric.get("gauge").unwrap_or(&metric["sum"]);
            for point in data["dataPoints"].as_array().unwrap() {
                let labels = point["attributes"].as_array().unwrap().iter();
                let labels: Vec<String> = labels
                    .map(|one| format!("{}={}", one["key"].as_str().unwrap(), one["value"]["stringValue"]))
                    .collect();
                let name = metric["name"].as_str().unwrap();
                series.push(format!(
                    "{name}{{{}}} {}",
                    labels.join(","),
                    point["asDouble"].as_f64().unwrap()
                ));
            }
        }
        series
    }
}

pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    sent: Receiver<Sent>,
}

impl Collector {
    /// Answers every request with this status line; one without an answer stays open.
    pub(crate) fn at(address: &str, answer: Option<&'static str>) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let (to, sent) = channel();
        std::thread::spawn(move || serve(&listener, answer, &to));
        Self { address, sent }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next request.
    pub(crate) fn next(&self) -> Sent {
        self.sent.recv_timeout(Duration::from_secs(60)).unwrap()
    }
}

fn serve(listener: &TcpListener, answer: Option<&str>, to: &Sender<Sent>) {
    let mut open = Vec::new();
    for connection in listener.incoming() {
        let mut connection = connection.unwrap();
        let sent = read(&mut connection);
        if let Some(answer) = answer {
            write!(connection, "HTTP/1.1 {answer}\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
        } else {
            open.push(connection);
        }
        if to.send(sent).is_err() {
            return;
        }
    }
}

fn read(connection: &mut TcpStream) -> Sent {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        connection.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    connection.read_exact(&mut body).unwrap();
    Sent { head, body: serde_json::from_slice(&body).unwrap() }
}
