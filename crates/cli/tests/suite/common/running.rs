//! A command that runs until the test ends, and the metrics that it serves.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::{Duration, Instant};

/// Ends the command whatever the test does.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Where its metrics are. Takes its standard error, up to the line that says so.
    pub(crate) fn metrics(&mut self) -> Metrics {
        let said = BufReader::new(self.0.stderr.take().unwrap()).lines().map(Result::unwrap);
        let mut address = said.filter_map(|line| {
            let line = line.strip_prefix("busbound: metrics are at http://")?;
            Some(line.strip_suffix("/metrics")?.to_owned())
        });
        Metrics { address: address.next().unwrap() }
    }
}

pub(crate) struct Metrics {
    address: String,
}

impl Metrics {
    pub(crate) fn ask(&self, request: &str) -> String {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The first answer for which this is true.
    pub(crate) fn until(&self, is_it: impl Fn(&str) -> bool) -> String {
        let patience = Instant::now() + Duration::from_secs(60);
        loop {
            let answer = self.ask("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
            if is_it(&answer) {
                return answer;
            }
            assert!(Instant::now() < patience, "{answer}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
