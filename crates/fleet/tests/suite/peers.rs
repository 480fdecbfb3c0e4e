//! Two ranks of a third-party job, compared with independently computed numbers.
//!
//! The traces cannot be redistributed; see CONTRIBUTING.md. Without them this test prints a note and passes.

use std::path::PathBuf;

use busbound_diagnosis::{Options, Source, diagnose};
use busbound_fleet::{Fleet, RankSummary};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, discover, open};

#[test]
fn two_ranks_of_hta() {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/peers");
    let peers = std::env::var_os("BUSBOUND_PEERS").map_or_else(|| PathBuf::from(default), PathBuf::from);
    let folder = peers.join("hta/trace_filter");
    if !folder.is_dir() {
        eprintln!("skipped: no peer traces next to the checkout (set BUSBOUND_PEERS to their folder)");
        return;
    }
    let summary = |path: &PathBuf| {
        let trace = open(path, &ReadOptions::default()).unwrap();
        let source = Source::named(path.file_name().unwrap().to_string_lossy());
        RankSummary::of(&diagnose(&trace, &source, &Machine::default(), &Options::default()))
    };
    let answer = Fleet::of(discover(&folder).unwrap().iter().map(summary)).answer(None);
    let shares: Vec<String> =
        answer.ranks.iter().map(|rank| format!("{:.2}", rank.comm_compute_pct_of_comm.unwrap())).collect();
    assert_eq!(shares, ["14.95", "19.93"]);
    assert_eq!(
        answer.statement,
        "2 of 128 ranks: 1 host-bound, 1 inconclusive; 617 ms/step (615–619 ms across ranks); rank 1 spends more time outside communication: 468 ms/step (329 ms idle) vs. 447 ms."
    );
}
