//! `busbound mcp`: the answers of busbound as tools of the Model Context Protocol, over standard input and output.
//!
//! One line is one message. Tools run on a second thread, one after the other, so that pings are answered and calls can be
//! canceled in the meantime. Standard output has only messages of the protocol.

mod bound;
mod fields;
mod lines;
mod message;
mod roots;
mod server;
mod stop;
mod tools;
mod work;

use std::io::{self, BufReader};

use crate::args::mcp::McpArgs;
use crate::failure::Failure;
use crate::io::output::warn;
use roots::Roots;
use server::Server;

/// An answer needs room for its verdict.
const LEAST_ANSWER: u64 = 2_000;

pub(crate) fn run(args: &McpArgs) -> Result<(), Failure> {
    if args.max_answer < LEAST_ANSWER {
        return Err(Failure::usage(format!("--max-answer must be at least {LEAST_ANSWER} bytes")));
    }
    let roots = Roots::of(&args.root)?;
    warn(&format!("mcp: serving {} on standard input and output", roots.describe()));
    let server = Server::new(roots, usize::try_from(args.max_answer).unwrap_or(usize::MAX));
    work::serve(&server, BufReader::new(io::stdin()), io::stdout())
        .map_err(Failure::output_at("standard output"))
}
