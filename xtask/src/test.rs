//! `cargo xtask test`: everything that must hold before a change lands.

use crate::shell::{self, cargo, root, say, works};
use crate::{web, wheel};

pub(crate) fn run() -> anyhow::Result<()> {
    if works(&mut cargo(&["fmt", "--version"])) {
        run_cargo(&["fmt", "--all", "--check"])?;
    } else {
        say("skipped formatting: rustfmt is not installed (rustup component add rustfmt)");
    }
    if works(&mut cargo(&["clippy", "--version"])) {
        run_cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    } else {
        say("skipped lints: clippy is not installed (rustup component add clippy)");
    }
    if !root().join("../shared/peers").is_dir() && std::env::var_os("BUSBOUND_PEERS").is_none() {
        say("skipped within the tests: other people's traces are not beside the checkout (BUSBOUND_PEERS)");
    }
    // Unit, property, snapshot and CLI tests, then the examples in the documentation.
    run_cargo(&["test", "--workspace"])?;
    shell::run(cargo(&["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    // What the two below need, in one go: alone, each would have the crates they share compiled with features of its own.
    run_cargo(&["build", "--package", "busbound-cli", "--package", "busbound-python"])?;
    // The pages, in a real browser.
    web::test()?;
    wheel::test()
}

fn run_cargo(args: &[&str]) -> anyhow::Result<()> {
    shell::run(&mut cargo(args))
}
