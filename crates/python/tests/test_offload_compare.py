"""The comparison at the start: offload steps aside where it gains nothing. Times are made up."""

import copy
import logging
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is too large to install")
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "fixtures" / "offload"))
import models  # noqa: E402

import busbound  # noqa: E402
from busbound.offload import _compare  # noqa: E402

SMALL = {"width": 32, "inner": 48, "heads": 2, "layers": 5, "words": 64}
ON_CPU = {"device": "cpu", "smallest_block": 0, "resident": [], "slots": 2}


class Case:
    def __init__(self):
        torch.manual_seed(0)
        self.model = models.Decoder(**SMALL).eval().requires_grad_(False)
        self.ids = torch.randint(0, 64, (2, 8))
        self.expected = copy.deepcopy(self.model)(self.ids)

    def is_offloaded(self):
        return "forward" in vars(self.model.layers[0])

    def offload(self, gpu_memory="1GB", **options):
        return busbound.offload(self.model, gpu_memory=gpu_memory, example_inputs=self.ids, **ON_CPU, **options)

    def is_as_before(self):
        with torch.no_grad():
            return not self.is_offloaded() and torch.equal(self.model(self.ids), self.expected)


@pytest.fixture
def case():
    return Case()


@pytest.fixture
def timed(case, monkeypatch):
    """Passes take this long with offload and without; what is timed is noted."""

    def times(with_it, without):
        noted = []

        def group(run, passes, device):
            run()
            noted.append(case.is_offloaded())
            each = (with_it if case.is_offloaded() else without)
            return each[len(noted) % len(each)]

        monkeypatch.setattr(_compare, "_group", group)
        return noted

    return times


def test_offload_that_is_slower_than_the_model_as_it_came_steps_aside_with_one_line(case, timed, caplog):
    timed([12.0], [8.0])
    with caplog.at_level(logging.WARNING), case.offload() as run:
        assert case.is_as_before()
        line = "offload steps aside: a pass takes 12.0 ms with it and 8.0 ms without; compare=False offloads anyway"
        assert run.aside == line and str(run.report()) == line
    assert [record.getMessage() for record in caplog.records] == [line]
    # Ending it again changes nothing.
    assert case.is_as_before()


@pytest.mark.parametrize(
    ("with_it", "without", "stays"),
    [
        ([8.0], [12.0], True),
        # No gain that is worth it.
        ([7.9], [8.0], False),
        # Noise.
        ([7.0, 8.5], [7.5, 9.0], False),
        # Apart in spite of it.
        ([5.0, 7.0], [8.0, 11.0], True),
    ],
)
def test_only_a_gain_beyond_the_noise_counts(case, timed, caplog, with_it, without, stays):
    timed(with_it, without)
    with case.offload() as run, torch.no_grad():
        assert (run.aside is None) == stays == case.is_offloaded()
        assert torch.equal(case.model(case.ids), case.expected)
        # The passes that were timed are not part of the report.
        assert len(run._engine.passes) == (1 if stays else 0)
    assert case.is_as_before()
    assert bool(caplog.records) != stays


def test_memory_that_forces_streaming_is_no_reason_to_step_aside(case, timed):
    noted = timed([12.0], [8.0])
    weights = sum(each.nbytes for each in case.model.parameters())
    with case.offload(weights - 1) as run:
        assert run.aside is None and case.is_offloaded()
    assert noted == []


def test_a_comparison_that_is_not_wanted_takes_no_time(case, timed):
    noted = timed([12.0], [8.0])
    with case.offload(compare=False) as run:
        assert run.aside is None and noted == []


@pytest.mark.parametrize("ms", [6.0, 20.0])
def test_a_function_is_compared_in_turns(case, timed, monkeypatch, ms):
    noted, calls = [], []

    def group(run, passes, device):
        run()
        noted.append("other" if calls and calls[-1] else "offload")
        found = ms if noted[-1] == "other" else 10.0
        calls.append(False)
        return found

    monkeypatch.setattr(_compare, "_group", group)
    with case.offload(compare=lambda: calls.append(True)) as run:
        assert (run.aside is None) == (ms > 10) == case.is_offloaded()
    assert noted[::2] == ["other", "offload"] * 3
    with pytest.raises(busbound.offload.OffloadError, match="example_inputs"):
        busbound.offload(case.model, gpu_memory="1GB", compare=lambda: None, **ON_CPU)


def test_a_comparison_leaves_gradients_alone(case, timed):
    timed([8.0], [12.0])
    case.model.embed.weight.requires_grad_(True)
    kept = case.model.embed.weight.grad = torch.ones_like(case.model.embed.weight)

    def step():
        case.model(case.ids).square().mean().backward()

    with busbound.offload(case.model, gpu_memory="1GB", example_inputs=step, **ON_CPU) as run:
        assert run.aside is None and case.is_offloaded()
        assert case.model.embed.weight.grad is kept and torch.equal(kept, torch.ones_like(kept))


def test_an_error_of_the_compared_function_leaves_the_model_as_it_was(case):
    def broken():
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        case.offload(compare=broken)
    assert case.is_as_before()


def test_passes_that_are_measured_leave_statistics_and_random_numbers_alone():
    """A model in training mode: its running statistics and its next dropout are those of a program without these passes."""
    torch.manual_seed(0)

    def block():
        return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5))

    model = torch.nn.Sequential(*(block() for _ in range(4))).train().requires_grad_(False)
    alone, x = copy.deepcopy(model), torch.randn(16, 8)
    state = torch.get_rng_state()
    expected = [alone(x) for _ in range(3)]
    torch.set_rng_state(state)
    with busbound.offload(model, gpu_memory="1GB", example_inputs=x, **ON_CPU):
        assert torch.equal(torch.get_rng_state(), state)
        found = [model(x) for _ in range(3)]
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    assert all(torch.equal(one, other) for one, other in zip(model.buffers(), alone.buffers(), strict=True))
