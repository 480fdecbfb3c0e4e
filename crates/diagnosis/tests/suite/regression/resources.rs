//! Memory and settings that are not what the program asked for: pinned memory that is rounded up, offloading that moves nothing, and
//! links that are slower in one direction.

use std::collections::BTreeMap;

use busbound_diagnosis::{Diagnosis, FindingId, Options, Source, diagnose};
use busbound_machine::Machine;
use busbound_trace::{Bytes, Direction, LinkTraffic, MemoryKind, Timestamp, TraceBuilder, Transfer};

use super::claims::{MS, Program, US, found};

fn diagnosed(program: Program) -> Diagnosis {
    diagnose(&program.trace.finish(), &Source::named("built"), &Machine::default(), &Options::default())
}

/// Ten marked steps of 10 ms: a copy, and a kernel of 5 ms.
fn steps(program: &mut Program, transfer: Option<Transfer>, copy_ns: i64) {
    for i in 0..10i64 {
        let at = i * 10 * MS;
        program.trace.annotation(program.host, &format!("ProfilerStep#{i}"), at..at + 10 * MS);
        if let Some(transfer) = transfer {
            program.copy(at + 10 * US..at + 20 * US, transfer, at + 30 * US..at + 30 * US + copy_ns);
        }
        let start = at + 40 * US + copy_ns;
        program.kernel("at::native::add", at + 30 * US, start, 5 * MS);
    }
}

/// 130 MB asked, 268 MB pinned: what PyTorch's allocator does on an H200's host (fixtures/machines/raw/pinned.json).
#[test]
fn pinned_memory_beyond_what_was_asked_for_is_counted() {
    let of = |size: u64, is_torch: bool| {
        let mut program = Program::new();
        if is_torch {
            program.trace.name("aten::mm");
        }
        steps(&mut program, Some(Transfer::host_to_device(MemoryKind::Pinned, 136_314_880)), 3 * MS);
        program.trace.origin().pinned_sizes = Some(BTreeMap::from([(size, 8)]));
        diagnosed(program)
    };
    let run = of(268_435_456, true);
    let finding = found(&run, FindingId::PinnedRounding).unwrap_or_else(|| panic!("{:?}", run.findings));
    assert!(finding.seen.contains("About 2.15 GB are pinned for 1.09 GB of data"), "{}", finding.seen);
    assert!(finding.seen.contains("8 allocations of 268 MB for tensors of 136 MB"), "{}", finding.seen);
    assert!(found(&of(136_314_880, true), FindingId::PinnedRounding).is_none(), "exact sizes");
}

/// vLLM's `--cpu-offload-gb` without any effect: weights stay on the GPU, and nothing said so.
#[test]
fn offloading_that_moves_nothing_is_reported() {
    let of = |command: &str, bytes: u64, counted: bool| {
        let mut program = Program::new();
        steps(&mut program, Some(Transfer::host_to_device(MemoryKind::Pinned, bytes)), 50 * US);
        program.trace.origin().trace_name = Some(command.to_owned());
        for i in (0..200i64).filter(|_| counted) {
            let at = Timestamp::from_nanos(i * MS / 2);
            let reading = |direction| LinkTraffic { at, gpu: 0, direction, bytes: Bytes::new(1_000) };
            program.trace.link_traffic(reading(Direction::HostToDevice));
            program.trace.link_traffic(reading(Direction::DeviceToHost));
        }
        diagnosed(program)
    };
    let offloads = "vllm serve model --cpu-offload-gb 10";
    let run = of(offloads, 4_096, true);
    let finding = found(&run, FindingId::UnusedOffload).unwrap_or_else(|| panic!("{:?}", run.findings));
    assert!(
        finding.seen.contains("The command has --cpu-offload-gb 10, but no weights move"),
        "{}",
        finding.seen
    );
    assert!(!finding.saving_known);
    // Weights that move, kernels that may read them unseen, and a program that was not asked.
    for run in
        [of(offloads, 100_000_000, true), of(offloads, 4_096, false), of("vllm serve model", 4_096, true)]
    {
        assert!(found(&run, FindingId::UnusedOffload).is_none());
    }
}

/// accelerate's hooks run in each step, and everything is on the GPU.
#[test]
fn hooks_without_weights_to_move_are_reported() {
    let of = |frame: &str, bytes: u64| {
        let mut program = Program::new();
        steps(&mut program, Some(Transfer::host_to_device(MemoryKind::Pinned, bytes)), 50 * US);
        for i in 0..10i64 {
            let at = i * 10 * MS;
            program.trace.python_frame(program.host, frame, at + US..at + 8 * US);
        }
        diagnosed(program)
    };
    let hook = "accelerate/hooks.py(328): pre_forward";
    let run = of(hook, 4_096);
    let finding = found(&run, FindingId::UnusedOffload).unwrap_or_else(|| panic!("{:?}", run.findings));
    assert!(
        finding.seen.starts_with("Hooks of accelerate run in each step, but no weights move"),
        "{}",
        finding.seen
    );
    let group = of("diffusers/hooks/group_offloading.py(310): pre_forward", 4_096);
    assert!(found(&group, FindingId::UnusedOffload).is_some());
    // Every pipeline of diffusers has hooks, and FSDP gathers shards in its own.
    for (frame, bytes) in [
        (hook, 100_000_000),
        ("diffusers/hooks/hooks.py(190): new", 4_096),
        // It looks for hooks that are not there.
        ("diffusers/hooks/group_offloading.py(929): _get_group_onload_device", 4_096),
        ("FSDP::pre_forward", 4_096),
    ] {
        assert!(found(&of(frame, bytes), FindingId::UnusedOffload).is_none(), "{frame}");
    }
}

/// Public figures of GH200: 170 GB/s from the GPU. It was compared with the 396 GB/s of the other direction: "slow pinned copies".
#[test]
fn a_healthy_superchip_is_not_slow_in_either_direction() {
    let of = |transfer: Transfer, gbps: f64| {
        let mut program = Program::new();
        let bytes = transfer.bytes.unwrap().get();
        program.name_gpu("NVIDIA GH200 480GB", (9, 0));
        steps(&mut program, Some(transfer), (bytes as f64 / gbps) as i64);
        diagnosed(program)
    };
    let (up, down) = (
        Transfer::host_to_device(MemoryKind::Pinned, 800_000_000),
        Transfer::device_to_host(MemoryKind::Pinned, 500_000_000),
    );
    for (transfer, gbps) in [(up, 412.0), (up, 342.0), (down, 170.0), (down, 295.0)] {
        let run = of(transfer, gbps);
        assert!(found(&run, FindingId::SlowLink).is_none(), "{gbps} GB/s: {:?}", run.findings);
        assert!(
            !run.limitations.iter().any(|limitation| limitation.id.as_str() == "link_wrong"),
            "{gbps} GB/s"
        );
    }
    assert!(found(&of(up, 150.0), FindingId::SlowLink).is_some());
    // Memory that is not pinned is not staged there.
    let pageable = of(Transfer::host_to_device(MemoryKind::Pageable, 800_000_000), 300.0);
    assert!(found(&pageable, FindingId::PageableCopies).is_none(), "{:?}", pageable.findings);
}

/// ROCm does not record whether host memory is pinned: pageable copies were only "unknown", and no finding said what to do.
#[test]
fn copies_that_wait_and_are_slow_are_pageable_where_the_kind_is_not_recorded() {
    let of = |gbps: f64, waits: bool| {
        let mut program = Program::new();
        program.name_gpu("AMD Instinct MI300X", (9, 4));
        let unknown = Transfer {
            src: MemoryKind::Unknown,
            ..Transfer::host_to_device(MemoryKind::Pageable, 40_000_000)
        };
        let copy_ns = (40_000_000.0 / gbps) as i64;
        for i in 0..10i64 {
            let at = i * 12 * MS;
            program.trace.annotation(program.host, &format!("ProfilerStep#{i}"), at..at + 12 * MS);
            let returns = at + 30 * US + if waits { copy_ns } else { 10 * US };
            program.copy(at + 10 * US..returns, unknown, at + 20 * US..at + 20 * US + copy_ns);
            program.kernel("gemm", returns + 10 * US, at + 50 * US + copy_ns, 5 * MS);
        }
        diagnosed(program)
    };
    let run = of(9.0, true);
    let finding = found(&run, FindingId::PageableCopies).unwrap_or_else(|| panic!("{:?}", run.findings));
    assert!(
        finding.seen.contains("from memory that is probably pageable (its kind is not recorded"),
        "{}",
        finding.seen
    );
    assert!(finding.saves_ms_per_step.high > 2.0, "{:?}", finding.saves_ms_per_step);
    for (gbps, waits) in [(50.0, true), (9.0, false)] {
        assert!(found(&of(gbps, waits), FindingId::PageableCopies).is_none(), "{gbps} GB/s");
    }
}

/// ROCm reports all copies on stream 0, whatever stream they were issued on (kineto#1398): that they share it with kernels says nothing.
#[test]
fn no_finding_rests_on_the_stream_of_copies_on_amd() {
    let of = |runtime: &str| {
        let mut trace = TraceBuilder::default();
        let (host, stream) = (trace.thread(1, 1), trace.stream(0, 0));
        let (copy, launch) = (format!("{runtime}MemcpyAsync"), format!("{runtime}LaunchKernel"));
        let pinned = Transfer::host_to_device(MemoryKind::Pinned, 100_000_000);
        for i in 0..10i64 {
            let (at, id) = (i * 12 * MS, 2 * i as u64);
            trace.annotation(host, &format!("ProfilerStep#{i}"), at..at + 12 * MS);
            trace.runtime_call(host, &copy, at + 10 * US..at + 20 * US).correlation(id + 1);
            trace.copy(stream, pinned, at + 30 * US..at + 2 * MS).correlation(id + 1);
            trace.runtime_call(host, &launch, at + 30 * US..at + 40 * US).correlation(id + 2);
            trace.kernel(stream, "gemm", at + 2 * MS + 10 * US..at + 11 * MS).correlation(id + 2);
        }
        let machine = Machine::named("pcie5x16").unwrap();
        diagnose(&trace.finish(), &Source::named("built"), &machine, &Options::default())
    };
    let on_streams = [FindingId::SerializedCopies, FindingId::LatePrefetch, FindingId::NonBlockingPageable];
    let rests = |run: &Diagnosis| on_streams.iter().any(|id| found(run, *id).is_some());
    assert!(rests(&of("cuda")), "the same run on NVIDIA");
    assert!(!rests(&of("hip")));
}
