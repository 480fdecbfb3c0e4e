//! Is time attributed to the right blocks and stages?

use busbound_diagnosis::Options;

use super::events::{annotation, call, call_on, kernel, with};

fn by(wanted: &str) -> impl FnOnce(&mut Options) {
    let choice = busbound_diagnosis::BlockChoice::Matching(regex_lite::Regex::new(wanted).unwrap());
    move |options| options.blocks = choice
}

/// The backward pass was outside all blocks if its thread had an annotation anywhere.
#[test]
fn a_thread_with_annotations_elsewhere_still_belongs_to_the_backward_pass() {
    let events = [
        annotation("backward", 1, 0, 1000),
        annotation("forward", 1, 2000, 100),
        annotation("nccl:all_reduce", 2, 900, 50),
        call_on(2, 1, 100, 5),
        kernel("dgrad", 7, 1, 200, 300),
        call_on(2, 2, 910, 5),
        kernel("reduce", 7, 2, 920, 20),
        call_on(1, 3, 1500, 5),
        kernel("other", 7, 3, 1510, 20),
    ];
    let attribution = with(&events, by("backward|nccl")).attribution.unwrap();
    let gpu = |name: &str| attribution.blocks.iter().find(|block| block.name == name).unwrap().gpu_ms;
    assert_eq!((gpu("backward"), gpu("nccl:all_reduce")), (0.3, 0.02));
    // What the program's main thread launches outside of blocks stays outside.
    assert_eq!(attribution.outside.gpu_ms, 0.02);
}

#[test]
fn annotations_that_overlap_without_nesting_each_get_their_own_time() {
    let mut events = Vec::new();
    for i in 0..20 {
        let at = i * 1000;
        events.extend([annotation("A", 1, at, 100), annotation("B", 1, at + 50, 100)]);
        for (k, launched) in [20, 60, 120, 200].into_iter().enumerate() {
            let id = i * 10 + k as u32 + 1;
            events.push(call("cudaLaunchKernel", id, at + launched, 2));
            events.push(kernel("k", 7, id, at + launched + 10, 10));
        }
    }
    let attribution = with(&events, by("^[AB]$")).attribution.unwrap();
    let totals: Vec<(&str, usize, f64)> = attribution
        .blocks
        .iter()
        .map(|b| (b.name.as_str(), b.depth, (b.gpu_ms * b.count * 1e3).round()))
        .collect();
    // One kernel in A alone, one in both, one in B alone, one in neither.
    assert_eq!(
        totals.iter().map(|(name, depth, _)| (*name, *depth)).collect::<Vec<_>>(),
        [("A", 0), ("B", 1)]
    );
    let kernels = |ms: f64| (ms / attribution.outside.gpu_ms).round();
    assert_eq!(kernels(attribution.blocks[1].gpu_ms), 2.0);
    assert_eq!(kernels(attribution.blocks[0].gpu_ms), 3.0);
}

#[test]
fn a_stage_that_launches_nothing_once_does_not_shift_the_others() {
    let mut events = Vec::new();
    for i in 0..6 {
        let at = i * 1000;
        events.extend([annotation("load", 1, at, 100), annotation("compute", 1, at + 200, 100)]);
        if i != 2 {
            events.extend([
                call("cudaLaunchKernel", 2 * i + 1, at + 10, 5),
                kernel("l", 7, 2 * i + 1, at + 20, 100),
            ]);
        }
        events.extend([
            call("cudaLaunchKernel", 2 * i + 2, at + 210, 5),
            kernel("c", 7, 2 * i + 2, at + 220, 500),
        ]);
    }
    let choice = |name: &str| busbound_diagnosis::StageChoice {
        name: name.to_owned(),
        matching: regex_lite::Regex::new(name).unwrap(),
    };
    let stages = with(&events, |o| o.stages = vec![choice("load"), choice("compute")]).stages.unwrap();
    assert_eq!(stages.items, 6);
    assert_eq!(stages.each[5].stages_ms, [0.1, 0.5]);
    // 1 ms per item for 0.6 ms of stages.
    assert_eq!(stages.shape, busbound_diagnosis::PipelineShape::More);
    assert!(stages.statement.contains("more than the sum of its stages"), "{}", stages.statement);
}

/// The last `step` has no end that is known, so that its blocks are outside of the analyzed steps: each was counted 1.5 times.
#[test]
fn blocks_of_steps_that_are_not_analyzed_are_not_counted() {
    let path = crate::common::root().join("fixtures/cpuonly_layerwise_d2.json.gz");
    let attribution = crate::common::diagnosis_of(&path).attribution.unwrap();
    let layers: Vec<f64> = attribution.blocks.iter().map(|block| block.count).collect();
    assert_eq!(layers, [1.0; 12]);
}
