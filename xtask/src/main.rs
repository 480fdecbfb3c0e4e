//! Developer commands: `cargo xtask --help` lists them.

mod bench;
mod dist;
mod instructions;
mod setup;
mod shell;
mod skipped;
mod structure;
mod test;
mod web;
mod wheel;
mod words;

use clap::{Parser, Subcommand};
use skipped::Skipped;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check formatting, lints and structure, and run every test. This is what CI runs
    Test(test::TestArgs),
    /// Install what the tests need; `test` also does that, step by step
    Setup,
    /// Check lengths of functions and files, and import cycles; part of `test`
    Structure,
    /// Words that must not come back, in sources, documentation and snapshots; a part of `test`
    Words,
    /// Measure ratios and counts that must not get worse; writes docs/results/
    Bench(bench::BenchArgs),
    /// Build the HTML report's script and style sheet from web/ into crates/report/assets
    Web,
    /// Redraw the pages shown in the README and in docs/: docs/gallery/
    Gallery,
    /// Build the Python wheel and run its tests in a fresh environment; part of `test`
    Wheel,
    /// Pack the release archive for one platform: target/dist/
    Dist(dist::DistArgs),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Test(args) => test::run(args),
        Command::Setup => setup::all(),
        Command::Structure => structure::run(),
        Command::Words => words::run(),
        Command::Bench(args) => bench::run(&args),
        Command::Web => web::build(),
        Command::Gallery => web::gallery(),
        Command::Wheel => wheel::test(&mut Skipped::new(Vec::new())),
        Command::Dist(args) => dist::run(&args),
    }
}
