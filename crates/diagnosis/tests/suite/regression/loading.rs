//! Answers about runs that wait for their data loader.

use busbound_diagnosis::{FindingId, Options, what_if};
use busbound_machine::Machine;
use busbound_whatif::replay::{Change, CudaGraph};

use super::claims::{MS, Program, US};

/// What a step does after it has its batch.
struct Step {
    launches: i64,
    /// From one launch to the next.
    every: i64,
    kernel: i64,
    /// A gather on the CPU before the last launch.
    gather: i64,
}

/// Eight steps; a loader in the main process takes 60 ms for each batch.
fn loads_in_the_main_process(step: &Step) -> Program {
    let mut program = Program::new();
    let length = 60 * MS + step.launches * step.every + step.gather + MS;
    let mut free = 0;
    for number in 0..8i64 {
        let at = number * length;
        let host = program.host;
        program.trace.annotation(host, &format!("ProfilerStep#{number}"), at..at + length);
        let loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
        program.trace.annotation(host, loader, at..at + 60 * MS);
        for i in 0..step.launches {
            let mut call = at + 60 * MS + i * step.every;
            if i + 1 == step.launches && step.gather > 0 {
                program.trace.operator(host, "aten::index_select", call..call + step.gather - 10 * US);
                call += step.gather;
            }
            let start = free.max(call + 10 * US);
            program.kernel("gemm", call, start, step.kernel);
            free = start + step.kernel;
        }
    }
    program
}

/// A graph removed all host work between launches, also what prepares data.
#[test]
fn a_graph_neither_loads_batches_nor_gathers_them() {
    let program =
        loads_in_the_main_process(&Step { launches: 100, every: 50 * US, kernel: 20 * US, gather: 5 * MS });
    let trace = program.trace.finish();
    let graph: Vec<Vec<Change>> = vec![vec![CudaGraph.into()]];
    let answer = what_if(&trace, "built", &Machine::default(), &Options::default(), &graph).unwrap();
    let step_ms = answer.scenarios[0].step_ms;
    assert!(step_ms >= 64.5 && step_ms < answer.baseline_ms, "{step_ms} of {}", answer.baseline_ms);
}

/// "Best tested change: `graph`" in a run whose step is the loader's: workers were not tested, and the code beside the fix had
/// another number of them than its sentence.
#[test]
fn the_best_change_of_a_run_that_waits_for_batches_is_workers() {
    let step = || Step { launches: 600, every: 60 * US, kernel: 100 * US, gather: 0 };
    let run = loads_in_the_main_process(&step()).diagnosed();
    let input = run.findings.iter().find(|finding| finding.id == FindingId::InputWait).unwrap();
    let workers = input.evidence["workers"].as_u64().unwrap();
    let set = format!("num_workers={workers},");
    assert!(input.fix.contains(&set), "{}", input.fix);
    assert!(input.fix_code.as_deref().unwrap().contains(&set), "{:?}", input.fix_code);
    let trace = loads_in_the_main_process(&step()).trace.finish();
    let answer = what_if(&trace, "built", &Machine::default(), &Options::default(), &[]).unwrap();
    assert_eq!(answer.scenarios[0].apply, [format!("workers={workers}")], "{}", answer.statement);
}
