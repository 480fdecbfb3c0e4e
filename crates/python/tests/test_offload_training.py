"""All weights are trained while they are streamed, on a device without streams: results must be the same, bit by bit."""

import copy
import sys
import threading
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is too large to install")
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "fixtures" / "offload"))
import models  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import busbound  # noqa: E402

SMALL = {"width": 32, "inner": 48, "heads": 2, "layers": 5, "words": 64}
ON_CPU = {"device": "cpu", "smallest_block": 0, "gpu_memory": "1GB"}


def words():
    return torch.randint(0, 64, (2, 8))


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=1e-2)


class Checkpointed(models.Decoder):
    reentrant = False

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=self.reentrant)
        return self.head(self.norm(x))


class Reentrant(Checkpointed):
    reentrant = True


class TwoTowers(torch.nn.Module):
    """The same blocks twice in one loss."""

    def __init__(self):
        super().__init__()
        self.tower = models.Decoder(**SMALL)

    def forward(self, ids):
        return self.tower(ids) - self.tower(ids.flip(1))


CASES = {
    "MLP": (lambda: models.Mlp(32, 6), lambda: torch.randn(4, 32)),
    "decoder": (lambda: models.Decoder(**SMALL), words),
    "UNet-like": (lambda: models.Unet(8), lambda: torch.randn(2, 8, 16, 16)),
    # Three gradients of one weight may be added up in another order.
    "MoE with skipped experts": (lambda: models.Experts(32, rounds=2), lambda: torch.randn(3, 32)),
    "blocks used twice": (lambda: models.Repeated(**SMALL), words),
    "two towers": (TwoTowers, words),
    "checkpointed": (lambda: Checkpointed(**SMALL), words),
    "checkpointed, reentrant": (lambda: Reentrant(**SMALL), words),
}


def train(model, make_input, optimizer, steps=6, clip=None):
    torch.manual_seed(3)
    losses = []
    for _ in range(steps):
        loss = model(make_input()).square().mean()
        # Between forward and backward, as many programs do.
        optimizer.zero_grad()
        loss.backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(loss.detach().clone())
    return losses


def same(left, right):
    return len(left) == len(right) and all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def both(make):
    torch.manual_seed(0)
    model = make()
    return model, copy.deepcopy(model)


@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_losses_and_weights_are_identical(name, slots):
    make, make_input = CASES[name]
    model, reference = both(make)
    expected = train(reference, make_input, adam(reference.parameters()))
    with busbound.offload(model, slots=slots, resident=[1], optimizer=adam, **ON_CPU) as run:
        assert same(expected, train(model, make_input, run.optimizer))
        assert same(list(reference.state_dict().values()), list(model.state_dict().values()))
        inputs = make_input()
        with torch.no_grad():
            assert torch.equal(model(inputs), reference(inputs))
        assert "the CPU updates weights" in str(run.report())
    # What was trained stays, also that of the block that was resident.
    assert same(list(reference.state_dict().values()), list(model.state_dict().values()))


def test_blocks_are_updated_before_backward_ends():
    """All but the first one: backward is still computing the gradient of what is before the blocks."""
    model, _ = both(lambda: models.Decoder(**SMALL))
    with busbound.offload(model, resident=[], slots=2, optimizer=adam, **ON_CPU) as run:
        updated = []

        def before_first(_):
            run._updates.idle()
            updated.extend(index for index, each in run._updates._blocks.items() if each.is_updated)

        model.embed.weight.register_post_accumulate_grad_hook(before_first)
        train(model, words, run.optimizer, steps=1)
        assert updated == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["MLP", "decoder"])
def test_a_block_that_is_updated_while_backward_holds_it_is_copied_again(name):
    """Fused optimizers do not count their writes: the last block of backward kept its old weights."""
    make, make_input = CASES[name]
    model, reference = both(make)

    def fused(parameters):
        return torch.optim.AdamW(parameters, lr=1e-2, fused=True)

    expected = train(reference, make_input, fused(reference.parameters()))
    with busbound.offload(model, resident=[], slots=2, optimizer=fused, **ON_CPU) as run:
        before_step = run._engine.end_backward
        run.optimizer._before = lambda: (run._updates.idle(), before_step())
        assert same(expected, train(model, make_input, run.optimizer))
        assert same(list(reference.parameters()), list(model.parameters()))


def test_several_backward_passes_per_step_are_added_up():
    model, reference = both(lambda: models.Decoder(**SMALL))
    plain = adam(reference.parameters())
    with busbound.offload(model, resident=[], slots=2, optimizer=adam, **ON_CPU) as run:
        for _ in range(3):
            batches = [words(), words(), words()]
            for batch in batches:
                reference(batch).square().mean().backward()
            plain.step()
            plain.zero_grad()
            with run.optimizer.accumulate():
                for batch in batches[:-1]:
                    model(batch).square().mean().backward()
            model(batches[-1]).square().mean().backward()
            run.optimizer.step()
            run.optimizer.zero_grad()
        assert same(list(reference.parameters()), list(model.parameters()))


def test_a_second_backward_pass_that_was_not_announced_is_an_error():
    model, _ = both(lambda: models.Decoder(**SMALL))
    with busbound.offload(model, resident=[], slots=2, optimizer=adam, **ON_CPU) as run:
        model(words()).square().mean().backward()
        loss = model(words()).square().mean()
        with pytest.raises(busbound.offload.OffloadError, match="accumulate"):
            loss.backward()
        run.optimizer.zero_grad()
        # Nothing is left of the gradient that was refused.
        reference = models.Decoder(**SMALL)
        reference.load_state_dict(model.state_dict())
        plain = adam(reference.parameters())
        plain.load_state_dict(merged_state(run.optimizer, model))
        assert same(train(reference, words, plain, steps=2), train(model, words, run.optimizer, steps=2))


def merged_state(optimizer, model):
    """The state of all blocks' optimizers, as one optimizer of all parameters would have it."""
    state = {id(key): value for each in optimizer._all for key, value in each.state.items()}
    groups = copy.deepcopy(adam(model.parameters()).state_dict()["param_groups"])
    numbered = enumerate(model.parameters())
    return copy.deepcopy({"state": {n: state[id(p)] for n, p in numbered if id(p) in state}, "param_groups": groups})


def test_gradients_are_clipped_together():
    model, reference = both(lambda: models.Decoder(**SMALL))
    expected = train(reference, words, adam(reference.parameters()), clip=0.05)
    with busbound.offload(model, resident=[], slots=2, optimizer=adam, max_norm=0.05, **ON_CPU) as run:
        found = train(model, words, run.optimizer)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    unclipped = train(copy.deepcopy(both(lambda: models.Decoder(**SMALL))[1]), words, adam(reference.parameters()))
    assert not torch.allclose(found[-1], unclipped[-1], rtol=1e-2)


def test_the_norm_counts_every_backward_pass_of_a_step():
    model, reference = both(lambda: models.Decoder(**SMALL))
    plain = torch.optim.SGD(reference.parameters(), lr=1.0)
    make = lambda parameters: torch.optim.SGD(parameters, lr=1.0)  # noqa: E731
    with busbound.offload(model, resident=[], slots=2, optimizer=make, max_norm=0.05, **ON_CPU) as run:
        for _ in range(3):
            for batch in (words(), words()):
                reference(batch).square().mean().backward()
                # Nothing is updated before the step, so nothing has to be announced.
                model(batch).square().mean().backward()
                run._updates.idle()
            torch.nn.utils.clip_grad_norm_(reference.parameters(), 0.05)
            for optimizer in (plain, run.optimizer):
                optimizer.step()
                optimizer.zero_grad()
        torch.testing.assert_close(list(model.parameters()), list(reference.parameters()), rtol=1e-4, atol=1e-6)


def test_schedulers_and_saved_states_work():
    model, reference = both(lambda: models.Decoder(**SMALL))
    plain = adam(reference.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(plain, 1, gamma=0.5)
    with busbound.offload(model, resident=[], slots=2, optimizer=adam, **ON_CPU) as run:
        streamed = torch.optim.lr_scheduler.StepLR(run.optimizer, 1, gamma=0.5)
        for _ in range(3):
            train(reference, words, plain, steps=1)
            train(model, words, run.optimizer, steps=1)
            scheduler.step()
            streamed.step()
        state = copy.deepcopy(run.optimizer.state_dict())
        assert same(list(reference.parameters()), list(model.parameters()))
    with busbound.offload(model, resident=[], slots=2, optimizer=adam, **ON_CPU) as run:
        run.optimizer.load_state_dict(state)
        train(reference, words, plain, steps=2)
        train(model, words, run.optimizer, steps=2)
        assert same(list(reference.parameters()), list(model.parameters()))
        with pytest.raises(busbound.offload.OffloadError, match="6"):
            run.optimizer.load_state_dict({"optimizers": []})


def test_an_error_of_the_optimizer_is_raised_by_step():
    class Broken(torch.optim.SGD):
        def step(self, closure=None):
            raise ArithmeticError("broken")

    model, _ = both(lambda: models.Decoder(**SMALL))
    make = lambda parameters: Broken(parameters, lr=1e-2)  # noqa: E731
    with busbound.offload(model, resident=[], slots=2, optimizer=make, **ON_CPU) as run:
        model(words()).square().mean().backward()
        with pytest.raises(ArithmeticError, match="broken"):
            run.optimizer.step()
    assert not [each for each in threading.enumerate() if each.name == "busbound-updates"]


def test_a_model_that_fits_is_trained_on_the_gpu():
    model, reference = both(lambda: models.Decoder(**SMALL))
    expected = train(reference, words, adam(reference.parameters()))
    with busbound.offload(model, optimizer=adam, **ON_CPU) as run:
        assert "steps aside" in str(run.plan)
        assert same(expected, train(model, words, run.optimizer))
    # Closing used to bring back the weights from before the training.
    assert same(list(reference.parameters()), list(model.parameters()))


def test_the_budget_counts_gradients_and_states_of_what_is_on_the_gpu():
    model, _ = both(lambda: models.Decoder(**SMALL))
    outside = sum(each.nbytes for name, each in model.named_parameters() if not name.startswith("layers"))
    budget = {**ON_CPU, "gpu_memory": 32 * 2**20 + outside * 4 + 10_000}
    with pytest.raises(busbound.offload.OffloadError, match="gpu_memory must be at least"):
        busbound.offload.plan(model, optimizer=adam, slots=2, **budget)


def test_what_cannot_be_trained_is_refused_with_the_reason():
    refused = busbound.offload.OffloadError
    recurrent = torch.nn.Sequential(torch.nn.LSTM(8, 8), torch.nn.LSTM(8, 8))
    with pytest.raises(refused, match="resident"):
        busbound.offload(recurrent, resident=[], slots=2, optimizer=adam, **ON_CPU)
    with pytest.raises(refused, match="no parameter requires gradients"):
        frozen = models.Decoder(**SMALL).requires_grad_(False)
        busbound.offload(frozen, resident=[], slots=2, optimizer=adam, **ON_CPU)
    with pytest.raises(refused, match="give both"):
        busbound.offload(models.Decoder(**SMALL), max_norm=1.0, **ON_CPU)
    with busbound.offload(models.Decoder(**SMALL), resident=[], **ON_CPU) as run, pytest.raises(refused, match="optimizer="):
        _ = run.optimizer
