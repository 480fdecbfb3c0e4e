//! `busbound plan` with the questions that people asked: headline, tables and inputs say the same.

use crate::common::{busbound, fixture, text};

/// What it prints, with single spaces: lines break where they fit.
fn shown(line: &str) -> (String, Option<i32>) {
    let args: Vec<&str> = line.split_whitespace().collect();
    let (stdout, stderr, code) = text(&busbound(&args).output().unwrap());
    ((stdout + &stderr).split_whitespace().collect::<Vec<_>>().join(" "), code)
}

fn planned(line: &str) -> String {
    let (shown, code) = shown(&format!("plan {line}"));
    assert_eq!(code, Some(0), "{line}: {shown}");
    shown
}

fn refused(line: &str) -> String {
    let (shown, code) = shown(line);
    assert_ne!(code, Some(0), "{line}: {shown}");
    shown
}

#[test]
fn a_machine_that_names_a_gpu_gives_its_memory_and_links() {
    let model = "memory --params 7B --batch 1 --sequence 4096";
    let profile = fixture("machines/h200.json");
    for machine in ["--machine h200", "--gpu h200", &format!("--machine {profile}")] {
        let shown = planned(&format!("{model} {machine}"));
        assert!(shown.starts_with("It fits: 135.7 of 141 GB"), "{machine}: {shown}");
        assert!(shown.contains("between GPUs NVLink of h200"), "{machine}: {shown}");
    }
    // A GPU that is named as such is the GPU; the machine is then the link to the host.
    assert!(planned(&format!("{model} --machine h200 --gpu h100-sxm")).contains("of 80 GB"));
    assert!(planned(&format!("{model} --machine pcie4x16")).contains("h100-sxm, 80 GB"));
    assert!(planned("contention --machine h200").contains("8 × h200"));
    let parallel = "parallel --layers 32 --hidden 4096 --heads 32 --batch 64 --sequence 4096 --ranks 8";
    assert!(planned(&format!("{parallel} --link h200")).contains("GPU h200: "));
    assert!(planned(&format!("{parallel} --link nvlink4")).contains("GPU h100-sxm: "));
}

#[test]
fn the_sentence_gives_models_the_memory_of_the_table() {
    let models = "--model text=24x400MB:3.1 --model denoiser=57x420MB:9.5:50";
    let shown = planned(&format!("offload --gpu-memory 8GB --link h200 {models}"));
    assert!(shown.starts_with("Give 6.40 GB to text, 840 MB to denoiser:"), "{shown}");
    assert!(shown.contains("text 1 6.40 GB 14 of 24"), "{shown}");
}

#[test]
fn sizes_in_errors_have_units_and_are_enough() {
    let layers = "plan offload --layers 12 --bytes 168MB --compute 5 --gpu-memory";
    let why = refused(&format!("{layers} 100MB"));
    assert!(why.contains("must be at least 336 MB: ") && why.ends_with("not 100 MB"), "{why}");
    assert_eq!(shown(&format!("{layers} 336MB")).1, Some(0));
}

#[test]
fn missing_flags_name_what_can_be_given_instead() {
    let why = refused("plan offload");
    assert!(why.contains("--trace FILE") && why.contains("--model NAME=LAYERSxSIZE:MS"), "{why}");
    for plan in ["plan allreduce --ranks 8", "plan ddp --ranks 8 --compute 100"] {
        assert!(refused(plan).contains("give --bytes SIZE instead of --params"), "{plan}");
    }
    assert!(!refused("plan memory --batch 1").contains("--bytes"), "plan memory has no --bytes");
    assert!(refused("plan offload --machine h200").contains("the machine is given with --link"));
}

#[test]
fn contention_is_summed_up_for_the_machine_that_is_described() {
    let usual = planned("contention");
    let of_switch = "With a PCIe switch, 4 GPUs per uplink they take up to 15% longer while they overlap";
    assert!(usual.contains(of_switch), "{usual}");
    assert!(usual.contains("(100% with root ports of the host)"), "{usual}");
    assert!(planned("contention --below-switch 1").contains("they take up to 100% longer"), "as root ports");
}

#[test]
fn a_layout_that_is_described_has_a_row() {
    let shown = planned(
        "parallel --layers 80 --hidden 8192 --heads 64 --kv-heads 8 --batch 128 --sequence 4096 --ranks 32 --nodes 4 --net ib-ndr --format markdown",
    );
    let layout = shown.split("activations between stages, ").nth(1).unwrap();
    let name = layout.split(" |").next().unwrap();
    assert!(shown.contains(&format!("| {name} | ")), "{name:?}: {shown}");
}

#[test]
fn a_ring_on_switches_that_reduce_is_called_a_ring() {
    let file = fixture("topology/nccl-eight-gpus.xml");
    let shown = planned(&format!("contention --topology {file}"));
    assert!(shown.contains("GB/s per GPU alone (busbw), in a ring"), "{shown}");
    assert!(shown.contains("(NVLS) make a large one faster: `busbound plan allreduce`"), "{shown}");
}

#[test]
fn matrices_have_naive_and_compressed_steps() {
    let shown = planned("allreduce --bytes 1GB,2GB --ranks 8");
    assert!(shown.contains("reduced, naive GPUs NVLink 4 1.00 GB 8 37.8 ms"), "{shown}");
    let shown = planned("ddp --params 125M,1B --dtype fp32 --ranks 8 --compute 300");
    assert!(shown.contains("compressed 2x") && shown.contains("naive"), "{shown}");
}
