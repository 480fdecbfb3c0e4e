"""The command in the wheel, Ctrl-C, threads, and the cost of an import."""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path

import pytest

import busbound


def test_the_command_is_installed(fixtures):
    command = Path(sysconfig.get_path("scripts")) / "busbound"
    run = subprocess.run([command, "--version"], capture_output=True, text=True)
    assert (run.stdout, run.stderr, run.returncode) == (f"busbound {busbound.__version__}\n", "", 0)
    run = subprocess.run([command, "diagnose"], capture_output=True, text=True)
    assert run.returncode == 2 and "Usage: busbound diagnose" in run.stderr
    run = subprocess.run([command, "survey", fixtures / "walls.json"], capture_output=True, text=True)
    assert run.returncode == 3 and run.stderr.startswith("busbound: ") and not run.stdout
    failing = [command, "gate", fixtures / "graph_replay.json.gz", "--require", "findings < 0"]
    assert subprocess.run(failing, capture_output=True).returncode == 1


def test_a_closed_pipe_is_not_an_error(fixtures):
    command = [sys.executable, "-m", "busbound", "diagnose", fixtures / "off_block_pageable_c4.json.gz"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.close()
    assert child.stderr.read() == b""
    assert child.wait() == 0


def pipe_that_never_ends(tmp_path):
    """A file that never ends."""
    path = tmp_path / "endless.json"
    os.mkfifo(path)
    return path


def ends_at_interrupt(code, tmp_path):
    path = pipe_that_never_ends(tmp_path)
    child = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # Blocks until the other end is opened for reading.
    with open(path, "wb", buffering=0) as pipe:
        pipe.write(b'{"traceEvents": [' + b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":1},' * 1000)
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        began = time.monotonic()
        out, err = child.communicate(timeout=30)
        return child.returncode, out, err, time.monotonic() - began


def test_ctrl_c_ends_the_command(tmp_path):
    code = "import sys; sys.argv[1:] = ['survey', sys.argv[1]]; from busbound._cli import main; main()"
    returncode, _, _, seconds = ends_at_interrupt(code, tmp_path)
    assert returncode == -signal.SIGINT and seconds < 5


def test_ctrl_c_is_a_keyboard_interrupt(tmp_path):
    code = """
import sys, busbound
try:
    busbound.open(sys.argv[1])
except KeyboardInterrupt:
    print("interrupted", flush=True)
    # The reading thread must not affect how Python exits.
    sys.exit(7)
"""
    returncode, out, err, seconds = ends_at_interrupt(code, tmp_path)
    assert (returncode, out, err) == (7, "interrupted\n", "") and seconds < 5


def test_reading_a_trace_releases_the_gil(tmp_path):
    path = pipe_that_never_ends(tmp_path)
    read = []
    reading = threading.Thread(target=lambda: read.append(len(busbound.open(path))))
    reading.start()
    # If open held the GIL, this would never be reached.
    with open(path, "wb", buffering=0) as pipe:
        pipe.write(b'[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":1}]')
    reading.join(timeout=30)
    assert read == [1]


def test_importing_loads_little():
    code = "import sys; before = set(sys.modules); import busbound; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    own = ["busbound", "busbound._native", "busbound._options", "busbound._profiler", "busbound._trace"]
    assert [name for name in loaded if name.startswith("busbound")] == own
    assert not {"json", "typing", "dataclasses", "socket", "pyarrow", "numpy"} & set(loaded)


def test_types_are_correct(tmp_path, root):
    if shutil.which("mypy", path=sysconfig.get_path("scripts")) is None:
        pytest.skip("mypy is not installed")
    # Strict, and without other people's packages: their types take ten times as long.
    mypy = [sys.executable, "-m", "mypy", "--config-file", root / "crates/python/pyproject.toml"]
    whole = subprocess.run([*mypy, "-p", "busbound"], cwd=tmp_path, capture_output=True, text=True)
    assert whole.returncode == 0, whole.stdout
    program = tmp_path / "program.py"
    program.write_text(
        "import busbound\n"
        'diagnosis = busbound.open("run.json").diagnose()\n'
        "reveal_type(diagnosis.verdict.bound)\n"
        "reveal_type(diagnosis.copies[0].gbps)\n"
        "diagnosis.verdict.bond\n"
    )
    found = subprocess.run([*mypy, program], cwd=tmp_path, capture_output=True, text=True).stdout
    assert "Literal['transfer']" in found and "Rates | None" in found, found
    assert '"Verdict" has no attribute "bond"' in found and "Found 1 error in 1 file" in found, found
