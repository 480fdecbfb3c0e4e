"""Figures as curves of TensorBoard."""

import subprocess
import sysconfig
from pathlib import Path

import pytest

import busbound
from test_profiler import Profiler

COMMAND = Path(sysconfig.get_path("scripts")) / "busbound"


@pytest.fixture
def tensorboard():
    from tensorboard import summary

    # The one that TensorBoard serves its pages from.
    from tensorboard.backend.event_processing.plugin_event_accumulator import (
        EventAccumulator,
    )
    from tensorboard.util import tensor_util

    def curves(directory):
        events = EventAccumulator(str(directory))
        events.Reload()
        points = {tag: events.Tensors(tag) for tag in events.Tags()["tensors"]}
        return {
            tag: [(one.step, float(tensor_util.make_ndarray(one.tensor_proto))) for one in all]
            for tag, all in points.items()
        }

    return summary.Writer, curves


def test_the_parts_of_a_step_are_curves(fixtures, tmp_path, tensorboard):
    writer, curves = tensorboard[0](str(tmp_path)), tensorboard[1]
    runs = ("off_block_pageable_c4.json.gz", "off_block_pinned_c4.json.gz")
    for step, run in enumerate(runs):
        busbound.log_scalars(writer, busbound.open(fixtures / run).diagnose(), step)
    writer.close()
    read = curves(tmp_path)
    assert read["busbound/copying_only_ms"] == [(0, pytest.approx(205, rel=0.01)), (1, pytest.approx(36.3, rel=0.01))]
    assert read["busbound/step_ms"][0] == (0, pytest.approx(274, rel=0.01))
    assert read["busbound/step_if_fixed_ms"][0] == (0, pytest.approx(71.5, rel=0.01))
    assert set(read) >= {"busbound/compute_ms", "busbound/idle_ms", "busbound/step_without_its_bound_ms"}


def test_the_command_writes_the_same_curves(fixtures, tmp_path, tensorboard):
    run = fixtures / "off_block_pageable_c4.json.gz"
    writer, curves = tensorboard[0](str(tmp_path / "wheel")), tensorboard[1]
    busbound.log_scalars(writer, busbound.open(run).diagnose(), 20)
    writer.close()
    # One file per step, read in the order of the steps; the second export of step 20 replaces the first.
    for step in (20, 3, 20):
        command = [COMMAND, "export", run, "--to", "tensorboard", "-o", tmp_path / "command", "--at", str(step), "-q"]
        subprocess.run(command, check=True)
    assert len(list((tmp_path / "command").iterdir())) == 2
    by_wheel, by_command = curves(tmp_path / "wheel"), curves(tmp_path / "command")
    assert by_command.keys() == by_wheel.keys()
    for tag, points in by_command.items():
        (expected,) = by_wheel[tag]
        assert points == [(3, expected[1]), expected]


def test_a_trace_is_at_the_last_step_that_the_profiler_numbered(fixtures, tmp_path, tensorboard):
    command = [COMMAND, "export", fixtures / "train_ahead.json.gz", "--to", "tensorboard", "-o", tmp_path / "logs"]
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    assert said.stderr == f"busbound: wrote one point per curve to {tmp_path}/logs: tensorboard --logdir {tmp_path}/logs\n"
    assert [step for step, _ in tensorboard[1](tmp_path / "logs")["busbound/step_ms"]] == [11]


def test_each_recording_of_a_training_is_a_point(fixtures, tmp_path, tensorboard, capsys):
    writer, curves = tensorboard[0](str(tmp_path / "log")), tensorboard[1]
    handler = busbound.profiler_handler(tmp_path, quiet=True, writer=writer)
    for step in (10, 20):
        profiler = Profiler(fixtures / "off_block_pageable_c4.json.gz")
        profiler.step_num = step
        handler(profiler)
    writer.close()
    assert [step for step, _ in curves(tmp_path / "log")["busbound/compute_ms"]] == [10, 20]
    assert capsys.readouterr() == ("", "")


def test_a_writer_that_fails_does_not_stop_the_training(fixtures, tmp_path, capsys):
    busbound.profiler_handler(tmp_path, quiet=True, writer=object())(Profiler(fixtures / "off_block_pageable_c4.json.gz"))
    assert "add_scalar" in capsys.readouterr().err
