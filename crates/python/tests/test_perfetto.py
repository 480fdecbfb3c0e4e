"""Exports for Perfetto by the rules of its importer. web/test/perfetto.test.mjs opens them in Perfetto itself."""

import subprocess
import sys

import pytest

import busbound
from perfetto_rules import Import

TRACES = [
    "off_block_pageable_c4.json.gz",
    "off_layerwise_d2_c4_syncevents.json.gz",
    "train_pageable.json.gz",  # kernels that overlap within a stream
    "launch_bound.json.gz",
    "graph_replay.json.gz",
    "swap_duplex.json.gz",
    "pipe_serial.json.gz",
    "hostile/cut_in_gpu.json.gz",
    "nsight/off.sqlite",  # waits that overlap within a stream
    "recorded/offload.bbt",
    "runs/bare_decode.json.gz",
]
#: Processes from here on are busbound's own.
OWN = 2_000_000_000


def exported(fixtures, name, tmp_path, to="perfetto"):
    path = tmp_path / f"run.{to}.json"
    command = [sys.executable, "-m", "busbound", "export", fixtures / name, "--to", to, "-o", path, "-q"]
    subprocess.run(command, check=True)
    return path


@pytest.mark.parametrize("name", TRACES)
def test_the_importer_finds_no_error_and_drops_nothing(fixtures, tmp_path, name):
    trace = busbound.open(fixtures / name)
    for to in ("perfetto", "chrome"):
        read = Import(exported(fixtures, name, tmp_path, to))
        assert not read.errors, to
        original = [track for (process, _), track in read.tracks.items() if process < OWN]
        assert sum(len(track.slices) for track in original) == len(trace)
    # The last one had only the trace; this has what busbound found.
    read = Import(exported(fixtures, name, tmp_path))
    own = {key: track for key, track in read.tracks.items() if key[0] >= OWN}
    assert all(read.processes[process].startswith("busbound: ") for process, _ in own)
    assert all(track.name for track in own.values() if track.slices)
    streams = {key for key in read.tracks if key[0] < OWN and read.processes.get(key[0], "").startswith("GPU ")}
    assert all(read.tracks[key].name for key in streams if read.tracks[key].slices)


@pytest.mark.parametrize("name", TRACES)
def test_arrows_bind_to_the_call_and_to_its_work(fixtures, tmp_path, name):
    read = Import(exported(fixtures, name, tmp_path))
    assert read.flows
    for call, left, work, arrived in read.flows:
        assert (call.ts, work.ts) == (left, arrived)
        assert call.category in ("cuda_runtime", "cuda_driver") and work.category in ("kernel", "gpu_memcpy", "gpu_memset")


def test_counters_rise_and_end_at_zero(fixtures, tmp_path):
    read = Import(exported(fixtures, "off_block_pageable_c4.json.gz", tmp_path))
    assert {name for _, name in read.counters} == {"PCIe H2D GB/s"}
    for points in read.counters.values():
        times = [ts for ts, _ in points]
        assert times == sorted(set(times)) and points[-1][1] == 0
        assert max(value for _, value in points) > 5
