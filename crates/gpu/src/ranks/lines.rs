//! Lines over a connection, with a limit to what the other side can make us keep.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// The longest line is an ID of NCCL, or a reason.
const LONGEST: u64 = 8192;

/// The next line, without its end; `None` if the other side is gone, or says more than fits into a line.
pub(super) fn next_line(input: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    input.take(LONGEST).read_line(&mut line).ok()?;
    line.strip_suffix('\n').map(str::to_owned)
}

pub(super) fn say(mut stream: &TcpStream, line: &impl std::fmt::Display) -> std::io::Result<()> {
    // One packet: it is a barrier that many wait for.
    stream.write_all(format!("{line}\n").as_bytes())
}
