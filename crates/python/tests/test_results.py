"""Results outside the command: pages, copies, pickles, errors and options."""

import copy
import inspect
import pickle
import subprocess
import sys

import pytest

import busbound
import busbound.options
from busbound.results import Diagnosis


@pytest.fixture
def path(fixtures):
    return fixtures / "off_block_pageable_c4.json.gz"


def command(*args):
    return subprocess.run([sys.executable, "-m", "busbound", *map(str, args)], capture_output=True, text=True, check=True).stdout


def test_a_page_matches_the_command(path):
    trace = busbound.open(path)
    page = trace.diagnose(warmup=1).to_html()
    assert page == command("diagnose", path, "--warmup", "1", "--format", "html")
    # The trace is not in memory any more, and its file is read again.
    assert busbound.open(path).diagnose(warmup=1).to_html() == page
    assert "432 GPU events" in trace.survey().to_html()


def test_a_page_without_its_trace_has_text_and_tables(path, in_tmp):
    (in_tmp / "run.json.gz").write_bytes(path.read_bytes())
    diagnosis = busbound.open("run.json.gz").diagnose()
    drawn = diagnosis.to_html()
    (in_tmp / "run.json.gz").unlink()
    plain = diagnosis.to_html()
    assert "H2D copies from pageable memory" in plain and len(plain) < len(drawn)


def test_another_file_in_its_place_is_not_drawn(fixtures, path, in_tmp):
    (in_tmp / "run.json.gz").write_bytes(path.read_bytes())
    diagnosis = busbound.open("run.json.gz").diagnose()
    (in_tmp / "run.json.gz").write_bytes((fixtures / "launch_bound.json.gz").read_bytes())
    assert "H2D copies from pageable memory" in diagnosis.to_html()


def test_show_writes_a_file_outside_a_notebook(path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    diagnosis = busbound.open(path).diagnose()
    page = diagnosis.show()
    with open(page, encoding="utf-8") as file:
        assert file.read() == diagnosis.to_html()
    if sys.platform == "linux":
        assert opened == []
        monkeypatch.setenv("DISPLAY", ":0")
        page = diagnosis.show()
        assert opened == [f"file://{page}"]


def test_results_are_copied_and_pickled(path, fixtures):
    trace = busbound.open(path)
    diagnosis = trace.diagnose(machine="pcie5x16")
    answers = [diagnosis, trace.survey(), trace.whatif("pin"), busbound.summarize(diagnosis), busbound.compare(path, path)]
    answers.append(busbound.merge([answers[3]]))
    for answer in answers:
        for again in (copy.copy(answer), copy.deepcopy(answer), pickle.loads(pickle.dumps(answer))):
            assert type(again) is type(answer) and again == answer and again is not answer
            assert again.to_json() == answer.to_json() and again.to_markdown() == answer.to_markdown()
            assert str(again) == str(answer) and again._repr_html_() == answer._repr_html_()
    restored = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(diagnosis))))
    assert isinstance(restored, Diagnosis) and restored.findings[0].id == "pageable_copies"
    assert restored.to_html() == diagnosis.to_html()
    other = fixtures / "off_block_pinned_c4.json.gz"
    assert busbound.compare(restored, other) == busbound.compare(diagnosis, other)
    assert pickle.loads(pickle.dumps(diagnosis.verdict)) == diagnosis.verdict


def test_a_pickle_without_its_trace_says_so(path, in_tmp):
    (in_tmp / "run.json.gz").write_bytes(path.read_bytes())
    saved = pickle.dumps(busbound.open("run.json.gz").diagnose())
    (in_tmp / "run.json.gz").unlink()
    restored = pickle.loads(saved)
    assert "Transfer-bound" in str(restored)
    with pytest.raises(FileNotFoundError, match="not where it was"):
        restored.to_html()
    with pytest.raises(FileNotFoundError, match="run.json.gz"):
        busbound.compare(restored, path)


def test_errors_are_also_pythons_own(path, fixtures, tmp_path):
    cases = [
        (FileNotFoundError, busbound.NotFoundError, lambda: busbound.open(tmp_path / "absent.json")),
        (FileNotFoundError, busbound.NotFoundError, lambda: busbound.open(path).diagnose(machine=tmp_path / "absent.json")),
        (ValueError, busbound.UnreadableError, lambda: busbound.open(fixtures / "walls.json")),
        (ValueError, busbound.UnreadableError, lambda: busbound.merge(["{}"])),
        (ValueError, busbound.OptionError, lambda: busbound.open(path).diagnose(machine="abacus")),
        (ValueError, busbound.OptionError, lambda: busbound.open(path).diagnose(steps="(")),
        (ValueError, busbound.OptionError, lambda: busbound.open(path).diagnose(wall_ms=-1)),
        (ValueError, busbound.OptionError, lambda: busbound.whatif(path, "pinn")),
        (ValueError, busbound.OptionError, lambda: busbound.compare(path)),
        (ValueError, busbound.OptionError, lambda: busbound.open(path, storage_options={"anon": True})),
    ]
    for family, kind, action in cases:
        with pytest.raises(family) as raised:
            action()
        assert type(raised.value) is kind and isinstance(raised.value, busbound.BusboundError)
        again = pickle.loads(pickle.dumps(raised.value))
        assert type(again) is kind and str(again) == str(raised.value)
    assert issubclass(busbound.StorageError, OSError)


def test_misspelled_options_are_errors(path):
    trace = busbound.open(path)
    cases = [
        (lambda: trace.diagnose(machin="pcie4x16"), "diagnose() has no option 'machin': did you mean 'machine'?"),
        (lambda: busbound.open(path, thread=2), "open() has no option 'thread': did you mean 'threads'?"),
        (lambda: trace.copies(warm_up=1), "copies() has no option 'warm_up': did you mean 'warmup'?"),
        (lambda: busbound.compare(path, path, labels=("a", [1, 2])), "compare() has no option 'labels': did you mean 'label'?"),
        (lambda: trace.diagnose(xyz=1), "diagnose() has no option 'xyz': its options are machine, steps, warmup, wall_ms"),
        (lambda: busbound.offload.activations(0, devise="cpu"), "activations() has no option 'devise': did you mean 'device'?"),
    ]
    for action, message in cases:
        with pytest.raises(TypeError) as raised:
            action()
        assert str(raised.value) == message
    with pytest.raises(ValueError, match="pcie4x16"):
        trace.diagnose(machine="pcie4x61")


def public():
    """Every public function, and every public method of a public class."""
    modules = [busbound, busbound.offload]
    for module in modules:
        for name in module.__all__:
            thing = getattr(module, name) if name != "ray" else None
            if inspect.isclass(thing):
                for method, function in inspect.getmembers(thing, inspect.isfunction):
                    if not method.startswith("_"):
                        yield f"{thing.__name__}.{method}", function
            elif inspect.isfunction(thing):
                yield f"{module.__name__}.{name}", thing
    for method, function in inspect.getmembers(Diagnosis, inspect.isfunction):
        if not method.startswith("_"):
            yield f"Diagnosis.{method}", function


def test_docstrings_are_googles():
    names = []
    for name, function in public_without_torch():
        doc = inspect.getdoc(function)
        assert doc, name
        names.append(name)
        parameters = [one for one in inspect.signature(function).parameters.values() if one.name != "self"]
        documented = doc.partition("\nArgs:\n")[2].partition("\n\n")[0]
        for one in parameters:
            stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(one.kind, "")
            assert f"    {stars}{one.name}: " in documented, f"{name}: {one.name}"
        if inspect.signature(function).return_annotation not in ("None", inspect.Signature.empty):
            assert "\nReturns:\n" in doc, name
    assert {"busbound.open", "busbound.profile", "Trace.diagnose", "Diagnosis.show", "busbound.offload.plan"} <= set(names)


def public_without_torch():
    try:
        import torch  # noqa: F401
    except ImportError:
        # The classes of busbound.offload need torch.
        busbound.offload.__all__, whole = [name for name in busbound.offload.__all__ if name[0].islower()], busbound.offload.__all__
        try:
            yield from public()
        finally:
            busbound.offload.__all__ = whole
    else:
        yield from public()


def test_options_are_the_parameters():
    def keywords(function):
        kinds = inspect.signature(function).parameters.values()
        return {one.name for one in kinds if one.kind is inspect.Parameter.KEYWORD_ONLY}

    assert keywords(busbound.Trace.diagnose) == set(busbound.options.DiagnoseOptions.__annotations__)
    assert keywords(busbound.Trace.whatif) == set(busbound.options.DiagnoseOptions.__annotations__)
    assert keywords(busbound.Trace.gaps) == set(busbound.options.StepOptions.__annotations__)


def test_options_of_offload_are_those_of_the_plan():
    pytest.importorskip("torch", reason="torch is not installed: it is too large to install for one test")
    from busbound.offload._activations import Activations
    from busbound.offload._plan import make_plan

    names = set(inspect.signature(make_plan).parameters) - {"model", "gpu_memory", "store"}
    assert names == set(busbound.options.OffloadOptions.__annotations__)
    kept = set(inspect.signature(Activations.__init__).parameters) - {"self", "budget"}
    assert kept == set(busbound.options.ActivationOptions.__annotations__)
