//! Developer commands: `cargo xtask test`, `cargo xtask bench`, `cargo xtask web`, `cargo xtask gallery`,
//! `cargo xtask wheel`, `cargo xtask dist`.

mod bench;
mod dist;
mod shell;
mod test;
mod web;
mod wheel;

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
        Command::Test => test::run(),
        Command::Bench(args) => bench::run(&args),
        Command::Web => web::build(),
        Command::Gallery => web::gallery(),
        Command::Wheel => wheel::test(),
        Command::Dist(args) => dist::run(&args),
    }
}
