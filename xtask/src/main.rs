//! Developer commands: `cargo xtask test`, `cargo xtask bench`.

mod bench;
mod shell;
mod test;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Formatting, lints, and every test. What CI runs.
    Test,
    /// Ratios and counts that must not get worse; writes docs/results/
    Bench(bench::BenchArgs),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Test => test::run(),
        Command::Bench(args) => bench::run(&args),
    }
}
