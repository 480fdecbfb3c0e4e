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
    /// Formatting, lints, structure, and every test. What CI runs.
    Test(test::TestArgs),
    /// Installs what the tests need; `test` does so by itself, piece by piece
    Setup,
    /// Lengths of functions and files, and circles of imports; a part of `test`
    Structure,
    /// Words that must not come back, in sources, documentation and snapshots; a part of `test`
    Words,
    /// Ratios and counts that must not get worse; writes docs/results/
    Bench(bench::BenchArgs),
    /// Builds the HTML report's script and style sheet from web/ into crates/report/assets
    Web,
    /// Draws the pages shown in the README and in docs/ again: docs/gallery/
    Gallery,
    /// Builds the Python wheel and runs its tests in a fresh environment; a part of `test`
    Wheel,
    /// Packs a release's archive for one platform: target/dist/
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
