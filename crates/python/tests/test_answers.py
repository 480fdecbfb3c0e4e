"""Results match the output of the command."""

import json
import os
import subprocess
import sys

import pytest

import busbound
from busbound.results import Diagnosis, Verdict


def command(*args):
    return subprocess.run([sys.executable, "-m", "busbound", *map(str, args)], capture_output=True, text=True, check=True).stdout


def test_a_diagnosis_matches_the_command(fixtures):
    path = fixtures / "off_block_pageable_c4.json.gz"
    diagnosis = busbound.open(path).diagnose()
    assert isinstance(diagnosis, Diagnosis) and isinstance(diagnosis.verdict, Verdict)
    assert diagnosis.verdict.bound == "transfer"
    assert diagnosis.verdict.statement.startswith("Transfer-bound: 75% of each 274 ms step waits")
    assert diagnosis.copies[0].direction == "h2d" and diagnosis.copies[0].src == "pageable"
    assert diagnosis.findings[0].id == "pageable_copies"
    assert diagnosis.findings[0].saves_ms_per_step.low > 150
    assert diagnosis.machine.gpus[0].link.peak_gbps == pytest.approx(63.0, abs=0.1)
    assert diagnosis.stages is None
    assert diagnosis.to_json() == command("diagnose", path, "--format", "json")
    assert diagnosis.to_dict() == json.loads(diagnosis.to_json())
    assert str(diagnosis) == command("diagnose", path)
    assert diagnosis.to_markdown() == diagnosis._repr_markdown_() == command("diagnose", path, "--format", "markdown")


def test_options_match_the_command(fixtures):
    path = fixtures / "train_pageable.json.gz"
    trace = busbound.open(str(path))
    named = trace.diagnose(machine="pcie4x8", warmup=1)
    assert named.to_json() == command("diagnose", path, "--machine", "pcie4x8", "--warmup", "1", "--json")
    profile = fixtures / "machines" / "h200.json"
    measured = trace.diagnose(machine=profile)
    assert measured.machine.gpus[0].link.source == "measured"
    offload = busbound.open(fixtures / "off_block_pageable_c4.json.gz")
    assert offload.diagnose(steps="^step$").window.steps.found == "given"


@pytest.mark.parametrize("name", ["off_block_pageable_c4.json.gz", "recorded/offload.bbt", "nsight/off.sqlite"])
def test_every_format_is_surveyed(fixtures, name):
    trace = busbound.open(fixtures / name)
    survey = trace.survey()
    assert survey.source.events == len(trace) > 0
    assert survey.to_json() == command("survey", fixtures / name, "--json")


def test_runs_are_compared(fixtures):
    before, after = fixtures / "off_block_pageable_c4.json.gz", fixtures / "off_block_pinned_c4.json.gz"
    comparison = busbound.compare(before, after)
    assert comparison.to_json() == command("compare", before, after, "--json")
    diagnosed = busbound.compare(busbound.open(before).diagnose(), busbound.open(after))
    assert diagnosed == comparison
    labeled = busbound.compare(before, after, label=("batch", [2, 4]))
    assert labeled.to_json() == command("compare", before, after, "--label", "batch=2,4", "--json")
    with pytest.raises(busbound.BusboundError, match="two runs or more"):
        busbound.compare(before)
    with pytest.raises(busbound.BusboundError, match="one number above zero for each of the 2 runs"):
        busbound.compare(before, after, label=("batch", [2]))


def test_changes_are_predicted(fixtures):
    path = fixtures / "off_block_pageable_c4.json.gz"
    predicted = busbound.whatif(path, apply=["pin", "prefetch=2"])
    assert predicted.scenarios[0].apply == ["pin", "prefetch=2"]
    assert predicted.scenarios[0].step_ms < predicted.baseline_ms / 2
    assert predicted.to_json() == command("whatif", path, "--apply", "pin", "--apply", "prefetch=2", "--json")
    assert busbound.open(path).whatif("pin").scenarios[0].apply == ["pin"]
    assert len(busbound.whatif(path).scenarios) > 1
    with pytest.raises(busbound.BusboundError):
        busbound.whatif(path, apply=["faster"])


def test_ranks_are_summarized_and_merged(fixtures):
    names = ["off_block_pageable_c4.json.gz", "off_block_pinned_c4.json.gz"]
    summaries = [busbound.summarize(fixtures / name, host=f"node{i}") for i, name in enumerate(names)]
    assert [summary.host for summary in summaries] == ["node0", "node1"]
    assert summaries[0].verdict.bound == "transfer"
    fleet = busbound.merge(summaries)
    assert fleet.statement.startswith("2 ranks: ")
    assert fleet == busbound.merge([summaries[1].to_json(), summaries[0]])
    with pytest.raises(busbound.BusboundError):
        busbound.merge([])


def test_addresses_are_fetched(fixtures, tmp_path):
    pytest.importorskip("fsspec")
    folder = (fixtures / "ranks").resolve()
    fetched = busbound.open(f"file://{folder}/rank-4.json")
    assert fetched.path == f"file://{folder}/rank-4.json"
    assert fetched.diagnose().verdict == busbound.open(folder / "rank-4.json").diagnose().verdict
    assert busbound.summarize(f"file://{folder}/rank-4.json").rank.rank == 4
    with pytest.raises(busbound.BusboundError, match="matches 6 files"):
        busbound.open(f"file://{folder}/rank-*.json")
    with pytest.raises(busbound.BusboundError, match="file://.*absent.json"):
        busbound.open(f"file://{folder}/absent.json")
    with pytest.raises(busbound.BusboundError, match="nowhere://trace.json"):
        busbound.open("nowhere://trace.json")


def test_storage_options_reach_the_store(fixtures):
    fsspec = pytest.importorskip("fsspec")

    class Locked(fsspec.get_filesystem_class("memory")):
        protocol = "locked"
        store = {}  # noqa: RUF012 — as its base class
        pseudo_dirs = [""]  # noqa: RUF012

        def __init__(self, token=None, **options):
            super().__init__(**options)
            self.token = token

        def get_file(self, *args, **options):
            if self.token != "right":
                raise PermissionError("wrong token")
            return super().get_file(*args, **options)

    fsspec.register_implementation("locked", Locked, clobber=True)
    whole = (fixtures / "ranks" / "rank-4.json").read_bytes()
    with fsspec.open("locked://rank-4.json", "wb", token="right") as file:
        file.write(whole)
    trace = busbound.open("locked://rank-4.json", storage_options={"token": "right"})
    assert len(trace) == len(busbound.open(fixtures / "ranks" / "rank-4.json"))
    page = busbound.open("locked://rank-4.json", storage_options={"token": "right"}).diagnose().to_html()
    assert page == trace.diagnose().to_html()
    with pytest.raises(busbound.StorageError, match="wrong token"):
        busbound.open("locked://rank-4.json", storage_options={"token": "wrong"})


@pytest.mark.skipif(os.name != "posix", reason="nsys is a script here")
def test_a_report_is_exported_if_nsys_is_installed(fixtures, tmp_path, monkeypatch):
    report = tmp_path / "run.nsys-rep"
    report.write_bytes(b"nobody else reads this")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    nsys = tmp_path / "nsys"
    for script, message in [(f'cp "{fixtures}/nsight/off.sqlite" "$5"', None), ("echo no; exit 1", "nsys could not export it: no")]:
        nsys.write_text(f"#!/bin/sh\n{script}\n")
        nsys.chmod(0o755)
        if message is None:
            trace = busbound.open(report)
            assert (trace.path, len(trace)) == (str(report), len(busbound.open(fixtures / "nsight" / "off.sqlite")))
        else:
            with pytest.raises(busbound.BusboundError, match=message):
                busbound.open(report)
    nsys.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(busbound.BusboundError, match="nsys export --type sqlite"):
        busbound.open(report)


def test_errors_match_the_command(fixtures, tmp_path):
    cases = [fixtures / "walls.json", tmp_path / "no-such.json", tmp_path]
    for path in cases:
        with pytest.raises(busbound.BusboundError) as raised:
            busbound.open(path)
        assert str(path) in str(raised.value)
    with pytest.raises(busbound.BusboundError, match="its keys are"):
        busbound.open(fixtures / "walls.json")
    trace = busbound.open(fixtures / "graph_replay.json.gz")
    with pytest.raises(busbound.BusboundError, match="steps: "):
        trace.diagnose(steps="(")
    with pytest.raises(busbound.BusboundError, match="abacus"):
        trace.diagnose(machine="abacus")
    with pytest.raises(TypeError):
        busbound.open(7)


def test_a_damaged_file_is_read_as_far_as_possible(fixtures):
    diagnosis = busbound.open(fixtures / "hostile" / "cut_in_gpu.json.gz").diagnose()
    assert not diagnosis.source.complete and diagnosis.source.lost


def test_records_are_readable(fixtures):
    diagnosis = busbound.open(fixtures / "graph_replay.json.gz").diagnose()
    assert repr(diagnosis.verdict).startswith("Verdict(bound='")
    assert repr(busbound.open(fixtures / "graph_replay.json.gz")).startswith("<busbound.Trace ")
    with pytest.raises(AttributeError):
        _ = diagnosis.no_such_member
    for name in busbound.__all__:
        assert getattr(busbound, name).__doc__ or name == "__version__", name
    for method in ["diagnose", "survey", "whatif", "events", "copies", "collectives", "gaps", "steps"]:
        assert getattr(busbound.Trace, method).__doc__, method


def test_result_types_are_up_to_date(root):
    subprocess.run([sys.executable, root / "crates" / "python" / "generate.py", "--check"], check=True)
