use busbound_machine::Machine;
use proptest::prelude::*;

use super::*;

/// The decoder of the measurements: 16 layers of 405 MB, 0.5 GB outside.
fn decoder(compute_ms: f64, gpu_bytes: u64) -> StreamInputs {
    StreamInputs {
        blocks: vec![Block { bytes: 405_000_000, compute_ms }; 16],
        outside_ms: 0.5,
        host_ms: 0.0,
        link: Machine::named("h200").unwrap().link_of(None),
        measured_gbps: Some(55.4),
        gpu_bytes,
        outside_bytes: 525_000_000,
        activation_bytes: 100_000_000,
        slots: None,
        training: None,
    }
}

#[test]
fn with_little_memory_everything_is_streamed_at_the_rate_of_the_bus() {
    let plan = Stream::plan(&decoder(1.0, 1_500_000_000)).unwrap();
    assert_eq!((plan.slots, plan.bound), (2, StreamBound::Bus));
    assert!(plan.resident.iter().all(|resident| !resident));
    assert!((plan.limit_ms - 117.0).abs() < 0.1, "{}", plan.limit_ms);
    // Copies go on into the next pass, so nothing is added to the limit.
    assert!(plan.expected_ms < plan.limit_ms * 1.001, "{}", plan.expected_ms);
    // Two more layers stay on the GPU.
    assert!((plan.one_gb_more_ms.unwrap() - 117.0 * 14.0 / 16.0).abs() < 0.2);
}

#[test]
fn half_of_the_blocks_resident_takes_half_of_the_time() {
    let plan = Stream::plan(&decoder(1.0, 4_700_000_000)).unwrap();
    let resident = plan.resident.iter().filter(|resident| **resident).count();
    assert!(resident >= 8, "{resident}");
    assert!(plan.expected_ms <= 0.51 * 117.0, "{}", plan.expected_ms);
    // Spread: no three residents in a row while others are streamed.
    assert!(plan.used_bytes <= 4_700_000_000);
}

#[test]
fn compute_longer_than_the_copies_needs_no_residents_to_hide_them() {
    let plan = Stream::plan(&decoder(9.0, 2_000_000_000)).unwrap();
    assert_eq!((plan.bound, plan.hides_all_bytes), (StreamBound::Compute, None));
    assert!((plan.expected_ms - plan.compute_ms).abs() < 0.1, "{}", plan.expected_ms);
}

#[test]
fn the_memory_that_hides_all_copies_does_so() {
    let inputs = decoder(4.0, 2_000_000_000);
    let enough = Stream::plan(&inputs).unwrap().hides_all_bytes.unwrap();
    let plan = Stream::plan(&StreamInputs { gpu_bytes: enough, ..inputs }).unwrap();
    assert_eq!(plan.bound, StreamBound::Compute);
    assert!(plan.expected_ms < plan.compute_ms * 1.05, "{} {}", plan.expected_ms, plan.compute_ms);
}

#[test]
fn with_enough_memory_everything_is_resident() {
    let plan = Stream::plan(&decoder(1.0, 80_000_000_000)).unwrap();
    assert_eq!((plan.slots, plan.streamed_bytes, plan.one_gb_more_ms), (0, 0, None));
    assert_eq!(plan.expected_ms, plan.compute_ms);
}

#[test]
fn launches_bound_a_pass_of_short_kernels() {
    let plan = Stream::plan(&StreamInputs { host_ms: 20.0, ..decoder(0.1, 80_000_000_000) }).unwrap();
    assert_eq!((plan.bound, plan.expected_ms, plan.limit_ms), (StreamBound::Host, 20.0, 20.0));
}

#[test]
fn too_little_memory_is_an_error_that_says_how_much_is_needed() {
    let error = Stream::plan(&decoder(1.0, 1_000_000_000)).unwrap_err();
    assert!(error.to_string().contains("at least 1.44 GB:"), "{error}");
    let empty = StreamInputs { blocks: Vec::new(), ..decoder(1.0, 1) };
    assert!(Stream::plan(&empty).is_err());
    let predicted = Stream::predict(&decoder(1.0, 1), vec![false; 3], 2);
    assert!(predicted.is_err());
}

proptest! {
    #[test]
    fn a_plan_fits_its_memory_and_is_never_faster_than_its_limit(
        sizes in prop::collection::vec((1_000_000u64..500_000_000, 0.01f64..20.0), 1..24),
        memory in 0.0f64..1.2,
    ) {
        let blocks: Vec<Block> =
            sizes.into_iter().map(|(bytes, compute_ms)| Block { bytes, compute_ms }).collect();
        let total: u64 = blocks.iter().map(|block| block.bytes).sum();
        let gpu_bytes = 625_000_000 + (total as f64 * memory) as u64;
        let inputs = StreamInputs { blocks, ..decoder(1.0, gpu_bytes) };
        let Ok(plan) = Stream::plan(&inputs) else { return Ok(()) };
        prop_assert!(plan.used_bytes <= gpu_bytes);
        prop_assert!(plan.expected_ms >= plan.limit_ms * (1.0 - 1e-9), "{} {}", plan.expected_ms, plan.limit_ms);
        prop_assert!(plan.step_ms.low <= plan.expected_ms && plan.expected_ms <= plan.step_ms.high);
        let again = Stream::predict(&inputs, plan.resident.clone(), plan.slots).unwrap();
        prop_assert_eq!(again.expected_ms, plan.expected_ms);
    }
}

fn component(uses: f64, compute_ms: f64) -> Component {
    Component { inputs: decoder(compute_ms, 0), uses }
}

#[test]
fn the_model_that_runs_most_gets_the_memory() {
    let together = Together::plan(&[component(1.0, 1.0), component(50.0, 1.0)], 6_000_000_000).unwrap();
    let streamed: Vec<usize> = together
        .plans
        .iter()
        .map(|plan| plan.resident.iter().filter(|resident| !**resident).count())
        .collect();
    assert!(streamed[1] < streamed[0], "{streamed:?}");
    let alone =
        |bytes| Stream::plan(&StreamInputs { gpu_bytes: bytes, ..decoder(1.0, 0) }).unwrap().expected_ms;
    let halves = alone(3_000_000_000) * 51.0;
    assert!(together.total_ms < 0.8 * halves, "{} {halves}", together.total_ms);
    // Activations are there once.
    let used: u64 = together.gpu_bytes.iter().sum();
    assert!(used <= 6_000_000_000 + decoder(1.0, 0).activation_bytes);
}

#[test]
fn enough_memory_for_all_is_given_to_all() {
    let together = Together::plan(&[component(1.0, 1.0), component(3.0, 2.0)], 60_000_000_000).unwrap();
    assert!(together.plans.iter().all(|plan| plan.resident.iter().all(|resident| *resident)));
}

#[test]
fn too_little_memory_for_all_says_how_much_is_needed() {
    let error = Together::plan(&[component(1.0, 1.0), component(1.0, 1.0)], 2_000_000_000).unwrap_err();
    assert!(error.to_string().contains("at least"), "{error}");
    assert!(Together::plan(&[], 1).is_err());
    assert!(Together::plan(&[component(0.0, 1.0)], 60_000_000_000).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Giving every part of the room to either one is never better.
    #[test]
    fn no_other_division_in_parts_is_faster(uses in 1.0f64..60.0, compute in 0.5f64..8.0, room in 0u64..8_000_000_000) {
        let both = [component(1.0, compute), component(uses, 2.0)];
        let least = 2_770_000_000;
        let Ok(together) = Together::plan(&both, least + room) else { return Ok(()) };
        for first in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let share = |part: f64| 1_435_000_000 + (room as f64 * part) as u64;
            let of = |one: &Component, part| {
                let inputs = StreamInputs { gpu_bytes: share(part), ..one.inputs.clone() };
                let task = Task::of(&inputs);
                one.uses * Choice::best(&task, task.gpu_bytes).unwrap().step_ms(&task)
            };
            let other = of(&both[0], first) + of(&both[1], 1.0 - first);
            prop_assert!(together.total_ms <= other * 1.003, "{} {other}", together.total_ms);
        }
    }
}

/// The decoder with a backward pass of this many milliseconds per block, and a loss of 0.5 ms.
fn trained(compute_ms: f64, backward_ms: f64, slots: u32) -> StreamInputs {
    let training =
        Training { backward_ms: vec![backward_ms; 16], between_ms: 0.5, most_host_ms: 0.0, updates: None };
    StreamInputs { training: Some(training), slots: Some(slots), ..decoder(compute_ms, 1) }
}

fn predicted(inputs: &StreamInputs) -> Stream {
    Stream::predict(inputs, vec![false; inputs.blocks.len()], inputs.slots.unwrap()).unwrap()
}

/// What is in the ring when the pass turns around is not copied again, at neither end.
#[test]
fn a_training_step_copies_each_block_twice_except_those_in_the_ring() {
    let copy_ms = 405_000_000.0 / 55.4e6;
    for slots in [2, 3, 4] {
        let plan = predicted(&trained(1.0, 2.0, slots));
        let copies = 2.0 * f64::from(16 - slots) * copy_ms;
        assert!((plan.copy_ms - copies).abs() < 0.5, "{slots} slots: {} {copies}", plan.copy_ms);
        assert_eq!((plan.bound, plan.limit_ms), (StreamBound::Bus, plan.copy_ms));
        // Where it turns, the link waits for a slot while some of the blocks in the ring run.
        let waits = plan.expected_ms - plan.copy_ms;
        assert!((0.0..8.0).contains(&waits), "{slots} slots: {waits}");
    }
}

/// With two slots: the link waits for the last block's forward, the loss and its backward, and at the other end for the
/// first block's backward and forward and the second one's forward.
#[test]
fn the_link_waits_where_a_training_step_turns_around() {
    let plan = predicted(&trained(1.0, 2.0, 2));
    let waits = plan.expected_ms - plan.copy_ms;
    assert!((waits - (1.0 + 0.5 + 2.0 + 2.0 + 1.0 + 1.0)).abs() < 1.0 + 1e-9, "{waits}");
}

#[test]
fn long_compute_hides_the_copies_of_a_training_step() {
    let plan = predicted(&trained(10.0, 20.0, 3));
    assert_eq!(plan.bound, StreamBound::Compute);
    assert!((plan.expected_ms - (16.0 * 30.0 + 0.5)).abs() < 1e-6, "{}", plan.expected_ms);
    assert!(plan.step_ms.low < plan.expected_ms && plan.expected_ms < plan.step_ms.high);
}

#[test]
fn memory_for_half_of_the_blocks_halves_the_copies_of_a_training_step() {
    let inputs = StreamInputs { slots: None, ..trained(1.0, 2.0, 2) };
    let plan = Stream::plan(&StreamInputs { gpu_bytes: 4_700_000_000, ..inputs.clone() }).unwrap();
    let all = predicted(&trained(1.0, 2.0, 2));
    assert!(plan.resident.iter().filter(|resident| **resident).count() >= 7, "{:?}", plan.resident);
    assert!(plan.expected_ms < 0.55 * all.expected_ms, "{} {}", plan.expected_ms, all.expected_ms);
    assert!(plan.one_gb_more_ms.unwrap() < plan.expected_ms);
    let enough = Stream::plan(&StreamInputs { gpu_bytes: 80_000_000_000, ..inputs }).unwrap();
    assert!((enough.expected_ms - (16.0 * 3.0 + 0.5)).abs() < 1e-6, "{}", enough.expected_ms);
}

/// Four small blocks, 1 ms forward and 1 ms backward each.
fn updated(gradients_ms: f64, update_ms: f64, norm_ms: Option<f64>) -> Stream {
    let updates = Updates {
        gradients_ms: vec![gradients_ms; 4],
        update_ms: vec![update_ms; 4],
        norm_ms: norm_ms.map(|ms| vec![ms; 4]),
    };
    let training =
        Training { backward_ms: vec![1.0; 4], between_ms: 0.0, most_host_ms: 0.0, updates: Some(updates) };
    predicted(&StreamInputs {
        blocks: vec![Block { bytes: 1, compute_ms: 1.0 }; 4],
        outside_ms: 0.0,
        training: Some(training),
        slots: Some(2),
        ..decoder(1.0, 1)
    })
}

#[test]
fn updates_on_the_cpu_follow_backward_one_after_another() {
    // The first gradients come after four forward passes and one backward pass.
    let plan = updated(0.0, 10.0, None);
    assert!((plan.expected_ms - 45.0).abs() < 0.1, "{}", plan.expected_ms);
    assert_eq!((plan.bound, plan.limit_ms), (StreamBound::Updates, 40.0));
    // Short ones are hidden, except the last.
    let short = updated(0.0, 0.5, None);
    assert!((short.expected_ms - 8.5).abs() < 0.1, "{}", short.expected_ms);
    assert_eq!(short.one_gb_more_ms, None);
}

#[test]
fn clipping_waits_for_all_gradients() {
    // Norms end at 9 ms, and then come all updates.
    let plan = updated(0.0, 10.0, Some(1.0));
    assert!((plan.expected_ms - 49.0).abs() < 0.1, "{}", plan.expected_ms);
}

#[test]
fn gradients_leave_one_after_another() {
    // From the beginning of the first backward pass, at 4 ms.
    let plan = updated(5.0, 0.5, None);
    assert!((plan.expected_ms - 24.5).abs() < 0.1, "{}", plan.expected_ms);
}

#[test]
fn wrong_times_of_a_training_step_are_errors() {
    let with = |backward_ms: Vec<f64>, between_ms| {
        let training = Training { backward_ms, between_ms, most_host_ms: 0.0, updates: None };
        Stream::plan(&StreamInputs { training: Some(training), ..decoder(1.0, 2_000_000_000) })
    };
    assert!(with(vec![1.0; 16], 0.5).is_ok());
    assert!(with(vec![1.0; 15], 0.5).is_err());
    assert!(with(vec![f64::NAN; 16], 0.5).is_err());
    assert!(with(vec![1.0; 16], 0.6).is_err());
}

/// What the host needs for backward is not known apart from what it waits for: the range includes all of it.
#[test]
fn a_training_step_may_take_as_long_as_the_host_did() {
    let mut inputs = trained(0.1, 0.2, 2);
    let before = predicted(&inputs).step_ms;
    let training = inputs.training.as_mut().unwrap();
    training.most_host_ms = 2.0 * before.high;
    let plan = predicted(&inputs);
    assert_eq!((plan.step_ms.low, plan.step_ms.high), (before.low, 2.0 * before.high));
    inputs.training.as_mut().unwrap().most_host_ms = f64::NAN;
    assert!(Stream::predict(&inputs, vec![false; 16], 2).is_err());
}
