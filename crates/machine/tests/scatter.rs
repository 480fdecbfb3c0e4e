//! Does the chooser pick the fastest method? Two runs of `busbound bench --full --suite scatter` on an H200
//! (fixtures/scatter/visit.sh): the choice comes from the first, the times from the second.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should panic")]

use busbound_machine::bench::{
    Case, Direction, Limits, Memory, Mode, NodeSet, Samples, ScatterCase, ScatterMethod, ScatterTask, Suite,
    Task, tasks,
};
use busbound_machine::{
    Blocks, HostMemory, LinkFacts, Machine, MachineProfile, ScatterChoice, ScatterSource, median,
};

fn run(number: u32) -> Samples {
    let path = format!("{}/../../fixtures/scatter/scatter-{number}.json", env!("CARGO_MANIFEST_DIR"));
    Samples::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn blocks(task: &ScatterTask) -> Blocks {
    let memory = if task.memory == Memory::Pinned { HostMemory::Pinned } else { HostMemory::Pageable };
    let ScatterTask { direction, block_bytes, blocks, .. } = *task;
    Blocks { direction, memory, block_bytes, blocks: u64::from(blocks) }
}

/// The median time in nanoseconds.
fn took(case: &ScatterCase, method: ScatterMethod) -> f64 {
    let times = case.methods.iter().find(|times| times.method == method).unwrap();
    median(times.ns.iter().map(|ns| *ns as f64)).unwrap()
}

/// How many times as long as the fastest method the chosen one takes.
fn loss_of(choice: &ScatterChoice, case: &ScatterCase) -> f64 {
    let all = case.methods.iter().map(|times| took(case, times.method));
    took(case, choice.best().method) / all.fold(f64::INFINITY, f64::min)
}

fn loss(link: &LinkFacts, case: &ScatterCase) -> f64 {
    let choice = link.scatter(&blocks(&case.task));
    assert_eq!(choice.source, ScatterSource::Measured);
    loss_of(&choice, case)
}

/// The share of cells of the second run in which the choice is the fastest, or takes at most 5% longer.
fn share(profile: MachineProfile, cells: &[&ScatterCase]) -> f64 {
    let link = Machine::measured(profile).link_of(None);
    let good = cells.iter().filter(|case| loss(&link, case) <= 1.05);
    good.count() as f64 / cells.len() as f64
}

#[test]
fn the_chosen_method_is_the_fastest_or_within_5_percent_in_every_cell() {
    let (first, second) = (run(1), run(2));
    assert_eq!((first.wrong_data(), second.wrong_data()), ((0, 182), (0, 182)));
    let cells: Vec<&ScatterCase> = second.cases_of::<ScatterTask>().collect();
    assert_eq!(cells.len(), 182);
    assert_eq!(share(first.profile(), &cells), 1.0);
}

/// The grid of a quick run, and the cells of a full run that it does not have.
#[test]
fn a_quick_grid_chooses_well_between_its_points_and_beyond_them() {
    let (mut first, second) = (run(1), run(2));
    let quick = tasks(
        Mode::Quick,
        &[Suite::Scatter],
        &Limits { gpus: 1, largest: 1 << 28, managed: true, nodes: NodeSet::EMPTY },
    );
    let is_known = |case: &ScatterCase| quick.contains(&Task::Scatter(case.task));
    first.cases.retain(|case| matches!(case, Case::Scatter(case) if is_known(case)));
    assert_eq!(first.cases.len(), 32);
    let unseen: Vec<&ScatterCase> = second.cases_of::<ScatterTask>().filter(|case| !is_known(case)).collect();
    assert_eq!(unseen.len(), 150);
    let share = share(first.profile(), &unseen);
    assert!(share >= 0.95, "{share}");
}

/// The assumed costs were fitted to these runs by hand, so this shows only that they describe them.
#[test]
fn the_assumed_costs_describe_the_host_that_they_come_from() {
    let link = Machine::default().link_of(Some("NVIDIA H200"));
    let second = run(2);
    let (mut off, mut good, mut cells) = (Vec::new(), 0, 0);
    for case in second.cases_of::<ScatterTask>() {
        let choice = link.scatter(&blocks(&case.task));
        assert_eq!(choice.source, ScatterSource::Assumed);
        for times in &case.methods {
            let us = took(case, times.method) / 1e3;
            off.push((choice.of(times.method).unwrap().us / us).ln().abs());
        }
        cells += 1;
        good += usize::from(loss_of(&choice, case) <= 1.05);
    }
    let typical = median(off).unwrap();
    assert!(typical < 0.1, "{typical}");
    assert!(good * 100 >= 90 * cells, "{good} of {cells}");
}

/// H2D blocks below 28 KiB take several times as long in a batch call, as others report (vllm#42212).
#[test]
fn the_batch_call_is_slow_for_small_blocks_to_the_device() {
    let second = run(2);
    let per_byte = |kib: u64| {
        let case = second.cases_of::<ScatterTask>().find(|case| {
            let ScatterTask { direction, memory, block_bytes, blocks } = case.task;
            (direction, memory, block_bytes, blocks) == (Direction::H2d, Memory::Pinned, kib << 10, 1024)
        });
        took(case.unwrap(), ScatterMethod::Batch) / (kib as f64)
    };
    assert!(per_byte(24) > 3.0 * per_byte(28), "{} and {}", per_byte(24), per_byte(28));
}
