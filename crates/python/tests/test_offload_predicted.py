"""Training steps: what the planner predicts, beside the engine itself in simulated time."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is too large to install")
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "fixtures" / "offload"))
import json  # noqa: E402

import models  # noqa: E402

import busbound  # noqa: E402
from busbound._native import plan_stream  # noqa: E402
from busbound.offload import _lanes, _ring  # noqa: E402
from busbound.offload._probe import TrainingTimes  # noqa: E402
from busbound.offload._rehearsal import _StandIn  # noqa: E402

ON_CPU = {"device": "cpu", "smallest_block": 0}


class SimulatedLanes(_lanes.HostLanes):
    """Copies and compute take as long as the test says."""

    def __init__(self, slots, copy_ms):
        self.filled, self.released = [0.0] * slots, [0.0] * slots
        self.copies, self.now, self.copy_ms, self.count = 0.0, 0.0, copy_ms, 0

    def filler(self, slot, target, source):
        def fill():
            target.copy_(source)
            self.copies = max(self.copies, self.released[slot]) + self.copy_ms
            self.filled[slot] = self.copies
            self.count += 1

        return fill

    def use(self, slot):
        self.now = max(self.now, self.filled[slot])

    def release(self, slot):
        self.released[slot] = self.now

    def turn(self, slot, fill):
        self.release(slot)
        fill()


class Block(torch.nn.Module):
    """Takes a millisecond or so forward, and another time backward."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.eye(8), requires_grad=False)

    def forward(self, x):
        CLOCK.now += CLOCK.forward_ms
        return Backward.apply(x) @ self.weight


class Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        CLOCK.now += CLOCK.backward_ms
        return gradient


class CLOCK:
    """The lanes of the engine, when there is one."""


@pytest.mark.parametrize("slots", [2, 3, 4])
@pytest.mark.parametrize(("forward_ms", "backward_ms"), [(1.0, 2.0), (3.0, 1.0), (6.0, 9.0), (9.0, 20.0)])
@pytest.mark.parametrize("resident", [[], [1, 5, 9], list(range(0, 12, 2))])
def test_a_step_with_frozen_weights_takes_as_long_as_predicted(monkeypatch, slots, forward_ms, backward_ms, resident):
    global CLOCK
    blocks, copy_ms = 12, 7.3
    made = []
    monkeypatch.setattr(_ring, "lanes_of", lambda device, count: made.append(SimulatedLanes(count, copy_ms)) or made[-1])
    model = torch.nn.Sequential(*(Block() for _ in range(blocks)))
    options = {"gpu_memory": "1GB", "resident": resident, "slots": slots, **ON_CPU}
    with busbound.offload(model, **options):
        CLOCK = made[0]
        CLOCK.forward_ms, CLOCK.backward_ms = forward_ms, backward_ms
        ends, copies = [], []
        for _ in range(6):
            model(torch.ones(2, 8, requires_grad=True)).sum().backward()
            ends.append(CLOCK.now)
            copies.append(CLOCK.count)
    nbytes = 405_000_000
    times = TrainingTimes([backward_ms] * blocks, 0.0, 0.0, [], [], [])
    stays = [index in resident for index in range(blocks)]
    answer = json.loads(
        plan_stream([nbytes] * blocks, [forward_ms] * blocks, 0.0, 0.0, 10**12, 0, 0, nbytes / copy_ms / 1e6, None, slots, stays, times)
    )
    assert answer["expected_ms"] == pytest.approx(ends[-1] - ends[-2], rel=1e-6)
    assert answer["copy_ms"] == pytest.approx((copies[-1] - copies[-2]) * copy_ms, rel=1e-6)


SMALL = {"width": 32, "inner": 48, "heads": 2, "layers": 5, "words": 64}


def trained(model, ids):
    def step():
        model(ids).square().mean().backward()

    return step


def test_a_plan_with_a_backward_pass_predicts_steps():
    torch.manual_seed(0)
    model, ids = models.with_adapters(models.Decoder(**SMALL)), torch.randint(0, 64, (2, 8))
    step = trained(model, ids)
    plan = busbound.offload.plan(model, step, gpu_memory="1GB", resident=[], slots=2, compare=False, **ON_CPU)
    times = plan.measured.training
    assert len(times.backward) == 5 and all(ms > 0 for ms in times.backward) and times.updates == []
    assert "ms per step" in str(plan) and plan.unit == "step"
    # Forward and backward, each once.
    assert plan.step_ms > sum(plan.measured.compute_ms) + sum(times.backward)
    assert all(each.grad is None for each in model.parameters())
    with busbound.offload(model, plan) as run:
        for _ in range(3):
            step()
        assert "ms per step" in str(run.report()) and len(run.report().passes_ms) == 2
    inference = busbound.offload.plan(model, ids, gpu_memory="1GB", resident=[], slots=2, compare=False, **ON_CPU)
    assert inference.measured.training is None and "ms per pass" in str(inference)


@pytest.mark.parametrize("max_norm", [None, 1.0])
def test_a_rehearsal_of_training_changes_no_weights_and_predicts_steps(max_norm):
    torch.manual_seed(0)
    model, ids = models.Decoder(**SMALL), torch.randint(0, 64, (2, 8))
    before = {name: each.clone() for name, each in model.state_dict().items()}
    made = []

    def make(parameters):
        made.append(parameters)
        return torch.optim.AdamW(parameters, lr=0.1)

    options = {"gpu_memory": "1GB", "resident": [], "slots": 2, "optimizer": make, "max_norm": max_norm, **ON_CPU}
    plan = busbound.offload.plan(model, trained(model, ids), **options)
    own = {id(each) for each in model.parameters()}
    assert all(id(each) not in own for parameters in made for each in parameters)
    # All blocks are alike: one copy of them, and one of what is on the GPU.
    assert len(made) == 2
    assert all(torch.equal(before[name], each) for name, each in model.state_dict().items())
    assert all(each.grad is None for each in model.parameters())
    times = plan.measured.training
    assert len(times.updates) == 5 and all(ms > 0 for ms in times.updates) and len(times.norms) == (5 if max_norm else 0)
    assert plan.step_ms >= sum(plan.measured.compute_ms) + sum(times.backward)
    assert "ms per step" in str(plan) and "updates on the CPU" in str(plan)
    with busbound.offload(model, plan) as run:
        for _ in range(3):
            trained(model, ids)()
            run.optimizer.step()
        assert run.report().is_as_predicted is not None
    assert any(not torch.equal(before[name], each) for name, each in model.state_dict().items())


def test_a_rehearsal_copies_weights_when_they_are_where_they_are_trained():
    """On a GPU, weights outside of blocks come there after the rehearsal was made: their copies were left on the host."""
    weight, made = torch.nn.Parameter(torch.zeros(3)), []

    def make(parameters):
        made.append([each.detach().clone() for each in parameters])
        return torch.optim.SGD(parameters, lr=1.0)

    stand_in = _StandIn([weight], make, {})
    weight.data = torch.ones(3)
    weight.grad = torch.ones(3)
    stand_in.step()
    assert torch.equal(made[0][0], torch.ones(3)) and torch.equal(weight, torch.ones(3))


def test_a_rehearsal_waits_for_the_step_that_it_times():
    """The host is ahead of the GPU: the last step may not have ended when it is asked how long it took."""

    class Event:
        has_ended = False

        def synchronize(self):
            self.has_ended = True

        def elapsed_time(self, end):
            if not end.has_ended:
                raise RuntimeError("not all of the events have completed")
            return 2.5

    stand_in = _StandIn([], None, {})
    stand_in._steps = [(0.0, 0.001, Event(), Event())]
    assert stand_in.times() == [2.5]


def test_a_rehearsal_that_fails_leaves_a_plan_without_a_prediction(caplog):
    torch.manual_seed(0)
    model, ids = models.Decoder(**SMALL), torch.randint(0, 64, (2, 8))
    before = {name: each.clone() for name, each in model.state_dict().items()}

    class Closures(torch.optim.SGD):
        def step(self, closure=None):
            if fails:
                raise TypeError("step() needs a closure")
            super().step()

    def make(parameters):
        return Closures(parameters, lr=0.1)

    fails = True
    options = {"gpu_memory": "1GB", "resident": [], "slots": 2, "optimizer": make, **ON_CPU}
    plan = busbound.offload.plan(model, trained(model, ids), **options)
    assert plan.step_ms is None and "a rehearsal of it failed: TypeError: step() needs a closure" in caplog.text
    assert all(torch.equal(before[name], each) for name, each in model.state_dict().items())
    assert all(each.grad is None for each in model.parameters())
    fails = False
    with busbound.offload(model, plan) as run:
        trained(model, ids)()
        run.optimizer.step()
    assert any(not torch.equal(before[name], each) for name, each in model.state_dict().items())


def test_a_function_without_backward_predicts_no_training_step():
    model, ids = models.Decoder(**SMALL), torch.randint(0, 64, (2, 8))

    def make(parameters):
        return torch.optim.SGD(parameters, lr=0.1)

    options = {"gpu_memory": "1GB", "resident": [], "slots": 2, "optimizer": make, **ON_CPU}
    for inputs in (ids, None):
        plan = busbound.offload.plan(model, inputs, **options)
        assert plan.step_ms is None and "as a function that runs forward and backward" in str(plan)


def test_checkpointed_blocks_are_computed_twice_in_backward():
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(models.Decoder):
        def forward(self, ids):
            x = self.embed(ids)
            for layer in self.layers:
                x = checkpoint(layer, x, use_reentrant=False)
            return self.head(self.norm(x))

    torch.manual_seed(0)
    model, ids = models.frozen(Checkpointed(**SMALL), lambda m: m.embed), torch.randint(0, 64, (2, 8))
    step = trained(model, ids)
    plan = busbound.offload.plan(model, step, gpu_memory="1GB", resident=[], slots=2, compare=False, **ON_CPU)
    assert all(ms > 0 for ms in plan.measured.training.backward)
    with busbound.offload(model, plan) as run:
        for _ in range(4):
            step()
        # A pass begins with the first block, not where backward computes it again.
        assert len(run.report().passes_ms) == 3


def test_models_that_run_one_after_another_are_not_trained():
    model, ids = models.with_adapters(models.Decoder(**SMALL)), torch.randint(0, 64, (2, 8))
    with pytest.raises(busbound.offload.OffloadError, match="plans inference"):
        busbound.offload.plan_together({"one": (model, trained(model, ids), 1)}, "1GB", **ON_CPU)
