//! Lines over a connection, with a limit to what the other side can make us keep.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

/// The longest line is an ID of NCCL, or a reason.
const LONGEST: u64 = 8192;

/// The reading side of a connection that others write to. Not a clone of it: each would be an open file, of which processes have few.
pub(super) struct Incoming(pub(super) Arc<TcpStream>);

impl Read for Incoming {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        (&*self.0).read(bytes)
    }
}

/// The next line, without its end; `None` if the other side is gone, or says more than fits into a line.
pub(super) fn next_line(input: &mut BufReader<impl Read>) -> Option<String> {
    let mut line = String::new();
    input.take(LONGEST).read_line(&mut line).ok()?;
    line.strip_suffix('\n').map(str::to_owned)
}

pub(super) fn say(mut stream: &TcpStream, line: &impl std::fmt::Display) -> std::io::Result<()> {
    // One packet: it is a barrier that many wait for.
    stream.write_all(format!("{line}\n").as_bytes())
}
