use busbound_machine::Machine;
use proptest::prelude::*;

use super::*;

fn inputs(layers: u32, bytes: f64, compute: f64, depth: u32) -> OffloadInputs {
    OffloadInputs {
        layers,
        layer_bytes: bytes,
        compute_ms: Range::one(compute),
        link: Machine::named("h200").unwrap().link_of(None),
        pinned: true,
        depth,
        resident: 0.0,
        sharing: 1,
        all_to_all_bytes: 0.0,
    }
}

#[test]
fn with_enough_compute_only_the_first_layer_is_exposed() {
    for depth in 1..6 {
        let plan = Offload::plan(inputs(40, 168e6, 500.0, depth)).unwrap();
        assert_eq!(plan.hides, Hiding::All, "depth {depth}");
        assert!(plan.exposed_ms[1..].iter().all(|ms| *ms < 1e-9));
        assert!((plan.exposed_ms[0] - plan.copy_ms).abs() < 1e-9);
        assert_eq!(plan.enough_depth, 1);
    }
}

/// Wall times of the programs in fixtures/README.md on the H200, in ms: compute only, then blocking from pinned
/// memory, then prefetched 1, 2 and 4 groups ahead.
#[test]
fn predictions_match_wall_times_of_real_runs_within_ten_percent() {
    for (compute_only, block, layerwise) in [
        (19.42, 53.61, [37.93, 37.86, 37.79]),
        (77.62, 104.12, [81.18, 81.34, 80.96]),
        (238.69, 257.16, [242.89, 241.30, 242.30]),
    ] {
        let compute = compute_only / 12.0;
        let step = |depth| Offload::plan(inputs(12, 167_772_160.0, compute, depth)).unwrap().step_ms.low;
        let near = |predicted: f64, wall: f64| (predicted / wall - 1.0).abs() < 0.10;
        assert!(near(step(0), block), "blocking: {} against {block}", step(0));
        for (depth, wall) in [1, 2, 4].into_iter().zip(layerwise) {
            assert!(near(step(depth), wall), "depth {depth}: {} against {wall}", step(depth));
        }
    }
}

#[test]
fn missing_pcie_bandwidth_is_reported_in_gb_per_second() {
    let plan = Offload::plan(inputs(12, 167_772_160.0, 1.5, 2)).unwrap();
    assert_eq!(plan.hides, Hiding::Cannot);
    // 111.8 GB/s needed, 55.4 available.
    assert!((plan.short_gbps.low - 56.5).abs() < 0.5, "{}", plan.short_gbps.low);
    // With 7 of 12 layers resident, all copies are hidden.
    let resident = plan.resident_that_hides.low;
    assert_eq!(resident, 7.0 / 12.0);
    let kept = Offload::plan(OffloadInputs { resident, ..inputs(12, 167_772_160.0, 1.5, 4) }).unwrap();
    assert_eq!(kept.hides, Hiding::All, "{:?}", kept.exposed_ms);
}

#[test]
fn ranks_that_share_the_link_get_a_part_of_it() {
    let alone = Offload::plan(inputs(12, 1e8, 3.0, 2)).unwrap();
    let four = Offload::plan(OffloadInputs { sharing: 4, ..inputs(12, 1e8, 3.0, 2) }).unwrap();
    assert!((four.copy_ms / alone.copy_ms - 4.0).abs() < 0.05);
    assert_eq!((alone.hides, four.hides), (Hiding::All, Hiding::Cannot));
}

fn over_pcie(inputs: OffloadInputs) -> OffloadInputs {
    OffloadInputs { link: Machine::named("pcie5x16").unwrap().link_of(None), ..inputs }
}

/// The exchange ran beside the kernels and cost nothing: "200 ms resident" for 40 layers of 5 ms, although 40 × 100 MB
/// at 55 GB/s are 72 ms that each layer waits for.
#[test]
fn the_kernels_of_a_layer_wait_for_its_all_to_all() {
    let plan =
        Offload::plan(over_pcie(OffloadInputs { all_to_all_bytes: 1e8, ..inputs(40, 1e8, 5.0, 1) })).unwrap();
    assert!((plan.all_to_all_ms / 72.2 - 1.0).abs() < 0.01, "{}", plan.all_to_all_ms);
    assert!((plan.resident_ms.low - 200.0 - plan.all_to_all_ms).abs() < 1e-6);
    // They share the link with the copies, and both take longer.
    assert!(plan.all_to_all_shares_link && plan.all_to_all_slowed_ms > 10.0, "{plan:?}");
    let waited: f64 = plan.exposed_ms.iter().sum();
    let overhead = plan.overhead_ms.low;
    assert!((waited + plan.all_to_all_slowed_ms - overhead).abs() < 1e-6, "{waited} and {overhead}");
    // Copies that wait for the exchange do not slow it down, and 5 ms of kernels hide 1.8 ms of copies.
    let spread = plan.spread_ms.unwrap();
    assert!(spread.low < plan.step_ms.low - 10.0, "{spread:?} and {:?}", plan.step_ms);
}

/// On a GPU with NVLink the exchange was put on PCIe: "bus is short by 8.1 GB/s".
#[test]
fn an_all_to_all_uses_nvlink_where_there_is_one() {
    let at = |link: &str| {
        let link = Machine::named(link).unwrap().link_of(None);
        Offload::plan(OffloadInputs { link, all_to_all_bytes: 1.5e8, ..inputs(12, 1e8, 2.0, 2) }).unwrap()
    };
    let (nvlink, pcie) = (at("h100-sxm"), at("h100-pcie"));
    assert_eq!((nvlink.hides, nvlink.all_to_all_slowed_ms, nvlink.spread_ms), (Hiding::All, 0.0, None));
    // 12 × 150 MB at 369 GB/s.
    assert!((nvlink.all_to_all_ms - 4.88).abs() < 0.01, "{}", nvlink.all_to_all_ms);
    assert!(pcie.all_to_all_shares_link && pcie.step_ms.low > 1.8 * nvlink.step_ms.low, "{pcie:?}");
}

/// Measured on the H200: 12 layers of 32 MiB from pageable memory, with compute as long as a copy, took 87 ms
/// blocking and 47 ms with a separate copy stream.
#[test]
fn pageable_copies_block_the_host_but_not_the_previous_layer() {
    let at = |depth| Offload::plan(OffloadInputs { pinned: false, ..inputs(12, 1e8, 10.0, depth) }).unwrap();
    let (blocking, ahead) = (at(0), at(1));
    assert!(ahead.step_ms.low < 0.6 * blocking.step_ms.low, "{:?}", (ahead.step_ms, blocking.step_ms));
    assert_eq!((ahead.enough_depth, at(4).step_ms), (1, ahead.step_ms));
}

/// Traffic from other GPUs uses the GPU's own link, not the uplink that ranks share.
#[test]
fn ranks_that_share_the_uplink_do_not_slow_down_an_exchange() {
    let at = |sharing| {
        let inputs =
            OffloadInputs { sharing, resident: 1.0, all_to_all_bytes: 1e8, ..inputs(12, 1e8, 1.0, 2) };
        Offload::plan(over_pcie(inputs)).unwrap().step_ms.low
    };
    assert_eq!(at(1), at(4));
}

/// Six rows repeated the figure of depth 1.
#[test]
fn depths_are_listed_only_while_they_differ() {
    let plan = Offload::plan(inputs(40, 168e6, 500.0, 1)).unwrap();
    assert_eq!(plan.depths.iter().map(|row| row.depth).collect::<Vec<_>>(), [0, 1]);
    let deeper = Offload::plan(inputs(40, 168e6, 500.0, 5)).unwrap();
    assert_eq!(deeper.depths.iter().map(|row| row.depth).collect::<Vec<_>>(), [0, 1, 5]);
}

/// The rows were those of the longest compute time, unsaid.
#[test]
fn a_range_of_compute_times_gives_ranges_at_every_depth() {
    let compute_ms = Range { low: 2.0, high: 6.5 };
    let plan = Offload::plan(OffloadInputs { compute_ms, ..inputs(12, 168e6, 2.0, 1) }).unwrap();
    for row in &plan.depths {
        assert!(row.step_ms.low < row.step_ms.high && row.exposed_ms.low < row.exposed_ms.high, "{row:?}");
    }
}

#[test]
fn a_few_copied_layers_profit_from_a_large_depth() {
    let plan = Offload::plan(OffloadInputs { resident: 0.95, ..inputs(100, 168e6, 0.2, 1) }).unwrap();
    assert!(plan.enough_depth > 8, "{}", plan.enough_depth);
    let deeper =
        Offload::plan(OffloadInputs { depth: plan.enough_depth + 1, ..plan.inputs.clone() }).unwrap();
    let enough = Offload::plan(OffloadInputs { depth: plan.enough_depth, ..plan.inputs.clone() }).unwrap();
    assert!(deeper.step_ms.low >= enough.step_ms.low * 0.999 && plan.step_ms.low > enough.step_ms.low);
}

#[test]
fn bandwidth_missing_at_only_one_end_of_the_range_hides_partly() {
    let plan = Offload::plan(OffloadInputs {
        compute_ms: Range { low: 2.0, high: 6.5 },
        ..inputs(12, 168e6, 2.0, 1)
    })
    .unwrap();
    assert_eq!(plan.hides, Hiding::Partly);
    assert!(plan.short_gbps.low == 0.0 && plan.short_gbps.high > 0.0);
}

#[test]
fn invalid_input_is_rejected() {
    for wrong in [
        inputs(0, 1e8, 5.0, 1),
        inputs(5001, 1e8, 5.0, 1),
        inputs(4, 1e8, 1e-20, 1),
        inputs(4, 0.0, 5.0, 1),
        OffloadInputs { resident: 1.5, ..inputs(4, 1e8, 5.0, 1) },
        OffloadInputs { sharing: 0, ..inputs(4, 1e8, 5.0, 1) },
        OffloadInputs { all_to_all_bytes: -1.0, ..inputs(4, 1e8, 5.0, 1) },
    ] {
        assert!(Offload::plan(wrong).is_err());
    }
}

proptest! {
    #[test]
    fn the_simulation_equals_the_closed_form(
        layers in 1u32..60,
        megabytes in 1.0f64..500.0,
        compute in 0.05f64..20.0,
        depth in 0u32..6,
    ) {
        let plan = Offload::plan(inputs(layers, megabytes * 1e6, compute, depth)).unwrap();
        let (n, copy) = (f64::from(layers), plan.copy_ms);
        let expected = if depth == 0 {
            n * (compute + copy)
        } else {
            copy + (n - 1.0) * compute.max(copy) + compute
        };
        prop_assert!((plan.step_ms.low / expected - 1.0).abs() < 1e-9, "{} against {}", plan.step_ms.low, expected);
        let waited: f64 = plan.exposed_ms.iter().sum();
        prop_assert!((waited + n * compute - plan.step_ms.low).abs() < 1e-6 * expected);
    }

    #[test]
    fn more_depth_and_more_resident_layers_never_cost_time(
        layers in 2u32..30,
        megabytes in 1.0f64..300.0,
        compute in 0.1f64..10.0,
        depth in 0u32..5,
        resident in 0.0f64..0.9,
    ) {
        let step = |depth, resident| {
            let inputs = OffloadInputs { resident, ..inputs(layers, megabytes * 1e6, compute, depth) };
            Offload::plan(inputs).unwrap().step_ms.low
        };
        prop_assert!(step(depth + 1, resident) <= step(depth, resident) * (1.0 + 1e-9));
        prop_assert!(step(depth, 1.0) <= step(depth, resident) * (1.0 + 1e-9));
    }
}
