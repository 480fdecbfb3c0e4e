"""``busbound.profile``: a few steps of a loop, and the answer at its end."""

import gzip
import sys

import pytest

import busbound
from busbound._profile import Profile

TORCH = "torch is not installed: it is too large to install for one test"


def work(torch):
    return torch.ones(128, 128) @ torch.ones(128, 128)


def test_a_loop_is_recorded_timed_and_answered(tmp_path, capsys):
    torch = pytest.importorskip("torch", reason=TORCH)
    with busbound.profile(steps=4, wait=10, warmup=1, directory=tmp_path) as p:
        assert isinstance(p, Profile) and p.diagnosis is None and p.path is None
        for _ in range(40):
            work(torch)
            p.step()
            if p.done:
                break
    assert p.steps == 15
    (trace,) = tmp_path.iterdir()
    assert p.path == str(trace)
    assert capsys.readouterr().out == f"{p.diagnosis}\n"
    assert p.diagnosis.source.path == p.path
    steps = p.diagnosis.window.steps
    assert steps is None or steps.count <= 4
    # The steps before the recording, timed without it.
    with gzip.open(trace, "rb") as file:
        head = file.read(1 << 12)
    assert b'"busbound_unprofiled_step_ms": [' in head
    assert head.split(b"[", 1)[1].split(b"]", 1)[0].count(b",") + 1 >= 8


def test_a_loop_that_ends_while_it_is_recorded(tmp_path, capsys):
    torch = pytest.importorskip("torch", reason=TORCH)
    with busbound.profile(steps=50, wait=0, warmup=0, directory=tmp_path, quiet=True) as p:
        for _ in range(5):
            work(torch)
            p.step()
    assert p.diagnosis is not None and not p.done
    assert capsys.readouterr().out == ""


def test_a_loop_that_is_too_short(tmp_path, capsys):
    torch = pytest.importorskip("torch", reason=TORCH)
    with busbound.profile(directory=tmp_path) as p:
        work(torch)
        p.step()
    assert p.diagnosis is None and p.path is None
    assert capsys.readouterr().err.startswith("busbound: nothing was recorded: the loop ended after 1 step, and")


def test_an_error_of_the_loop_is_the_loops(tmp_path):
    torch = pytest.importorskip("torch", reason=TORCH)
    with pytest.raises(ZeroDivisionError), busbound.profile(steps=2, wait=0, directory=tmp_path, machine="abacus", quiet=True) as p:
        for step in range(9):
            work(torch)
            p.step()
            1 / (7 - step)
    assert p.diagnosis is None


def test_options_are_checked_first(monkeypatch):
    for options in ({"steps": 0}, {"wait": -1}, {"warmup": 1.5}):
        with pytest.raises(ValueError, match="must be a number of steps"):
            busbound.profile(**options)
    with pytest.raises(TypeError, match="did you mean 'steps'"):
        busbound.profile(step=3)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "torch.profiler", None)
    with pytest.raises(ImportError, match="busbound.profile needs PyTorch"):
        busbound.profile()
