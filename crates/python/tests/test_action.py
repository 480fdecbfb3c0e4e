"""The GitHub action: its steps, run as GitHub runs them, with the real command."""

import os
import re
import shutil
import subprocess
import sys

import pytest

yaml = pytest.importorskip("yaml")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the action's steps are for bash")


@pytest.fixture
def action(root):
    return yaml.safe_load((root / "action.yml").read_text())


@pytest.fixture
def run(action, tmp_path, root):
    """Runs all steps with these inputs: exit code, job summary, outputs, and what was printed."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "busbound"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m busbound "$@"\n')
    command.chmod(0o755)

    def value(text, inputs):
        return re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda name: inputs[name[1]], str(text))

    def run(**given):
        given = {name.replace("_", "-"): text for name, text in given.items()}
        assert not given.keys() - action["inputs"].keys()
        inputs = {name: str(about.get("default", "")) for name, about in action["inputs"].items()} | given
        files = {name: tmp_path / name.lower() for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
        for file in files.values():
            file.write_text("")
        code, printed = 0, ""
        for step in action["runs"]["steps"]:
            script = tmp_path / "step.sh"
            script.write_text(step["run"])
            environment = os.environ | {name: str(file) for name, file in files.items()}
            environment |= {"GITHUB_ACTION_PATH": str(root), "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
            environment |= {name: value(text, inputs) for name, text in step.get("env", {}).items()}
            where = tmp_path / value(step.get("working-directory", "."), inputs)
            # As the runner does it.
            shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", script]
            done = subprocess.run(shell, cwd=where, env=environment, capture_output=True, text=True)
            code, printed = done.returncode, printed + done.stdout + done.stderr
            if code != 0:
                break
        outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
        return code, files["GITHUB_STEP_SUMMARY"].read_text(), outputs, printed

    return run


@pytest.fixture
def traces(fixtures):
    return str(fixtures / "off_block_pageable_c4.json.gz"), str(fixtures / "off_block_pinned_c4.json.gz")


def test_every_input_is_described_and_none_is_run_as_code(action):
    assert action["runs"]["using"] == "composite"
    for name, about in action["inputs"].items():
        assert about["description"], name
        assert about.get("required") or "default" in about, name
    assert action["outputs"]["passed"]["value"] == "${{ steps.gate.outputs.passed }}"
    for step in action["runs"]["steps"]:
        assert step["shell"] == "bash" and "${{" not in step["run"]


def test_a_faster_run_passes_with_before_and_after(run, traces):
    slow, fast = traces
    code, summary, outputs, printed = run(traces=fast, baseline=slow, require="step_p50 <= 1.05 * baseline\n\n  findings < 9\n")
    assert (code, outputs) == (0, {"passed": "true"}), printed
    assert "busbound 0." in printed
    assert "Passed: 2 checks" in summary and "step_p50" in summary
    assert "### Before and after: off_block_pinned_c4.json.gz" in summary and "2.6x faster" in summary


def test_a_slower_run_fails_with_annotations(run, traces):
    slow, fast = traces
    code, summary, outputs, printed = run(traces=f"{slow}\n{fast}", baseline=fast, require="step_p50 <= 1.05 * baseline")
    assert (code, outputs) == (1, {"passed": "false"}), printed
    assert "::error title=step_p50" in printed and "Failed: 1 of 2 checks" in summary and "2.6x slower" in summary
    code, _, outputs, _ = run(traces=slow, baseline=fast, require="step_p50 <= 1.05 * baseline", fail="false")
    assert (code, outputs) == (0, {"passed": "false"})


def test_a_saved_baseline_and_requirements_of_the_project(run, traces, tmp_path):
    slow, fast = traces
    base = tmp_path / "base.json"
    gate = [sys.executable, "-m", "busbound", "gate", fast, "--require", "findings < 9", "-o", str(base)]
    subprocess.run(gate, check=True)
    project = tmp_path / "project"
    project.mkdir()
    (project / "busbound.toml").write_text('[gate]\nrequire = ["step_p50 <= 1.05 * baseline"]\n')
    junit = tmp_path / "gate.xml"
    code, summary, outputs, printed = run(traces=slow, baseline=str(base), working_directory="project", junit=str(junit))
    assert (code, outputs) == (1, {"passed": "false"}), printed
    assert "step_p50" in summary and "Before and after" not in summary
    assert "<testsuite" in junit.read_text()


def test_errors_are_failures_whatever_fail_says(run, tmp_path):
    code, summary, outputs, printed = run(traces="absent.json", require="findings == 0", fail="false")
    assert (code, outputs) == (3, {"passed": "false"}), printed
    assert "could not be checked" in summary and "absent.json does not exist" in printed


def test_values_are_not_shell_code(run, traces, tmp_path):
    nasty = "$(touch pwned); `touch pwned` \"; touch pwned; '"
    code, _, outputs, _ = run(traces=f"{nasty}.json", require=f"findings == 0\n{nasty}", machine=nasty, baseline=nasty)
    assert code in (2, 3) and outputs == {"passed": "false"}
    assert not list(tmp_path.rglob("pwned"))
