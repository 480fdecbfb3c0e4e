"""Offload on a device without streams: results must be the same, bit by bit."""

import contextlib
import copy
import json
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is too large to install")
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "fixtures" / "offload"))
import models  # noqa: E402

import busbound  # noqa: E402
from busbound.offload._blocks import find_blocks  # noqa: E402

SMALL = {"width": 32, "inner": 48, "heads": 2, "layers": 5, "words": 64}
ON_CPU = {"device": "cpu", "smallest_block": 0}


def words():
    return torch.randint(0, 64, (2, 8))


CASES = {
    "MLP": (lambda: models.frozen(models.Mlp(32, 6), lambda m: m[0]), lambda: torch.randn(4, 32)),
    "decoder": (lambda: models.frozen(models.Decoder(**SMALL), lambda m: m.embed), words),
    "UNet-like": (lambda: models.frozen(models.Unet(8), lambda m: m.stem), lambda: torch.randn(2, 8, 16, 16)),
    "MoE": (lambda: models.frozen(models.Experts(32), lambda m: m.router), lambda: torch.randn(6, 32)),
    "tied": (lambda: models.frozen(models.TiedBlocks(**SMALL), lambda m: m.embed), words),
    "repeated": (lambda: models.frozen(models.Repeated(**SMALL), lambda m: m.embed), words),
    "LoRA": (lambda: models.with_adapters(models.Decoder(**SMALL)), words),
}


def steps(model, make_input, count=6, around=contextlib.nullcontext):
    """Losses, gradients and a last output."""
    torch.manual_seed(3)
    learning = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.SGD(learning, lr=1e-2)
    found = []
    for _ in range(count):
        optimizer.zero_grad()
        with around():
            loss = model(make_input()).square().mean()
        loss.backward()
        found += [loss.detach().clone(), *(each.grad.clone() for each in learning if each.grad is not None)]
        optimizer.step()
    with torch.no_grad():
        found.append(model(make_input()).clone())
    return found


def same(left, right):
    return len(left) == len(right) and all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_results_are_identical(name, slots):
    make, make_input = CASES[name]
    torch.manual_seed(0)
    model = make()
    reference = copy.deepcopy(model)
    expected = steps(reference, make_input)
    plan = busbound.offload.plan(model, gpu_memory="1GB", slots=slots, resident=[1], **ON_CPU)
    with busbound.offload(model, plan) as run:
        assert same(expected, steps(model, make_input))
        assert run.report().streamed_bytes > 0
    # Afterwards the model is as it would have been.
    assert "forward" not in vars(plan.store.blocks[0].module)
    assert same(list(reference.state_dict().values()), list(model.state_dict().values()))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_inference_with_mixed_dtypes_and_strides(mode):
    torch.manual_seed(0)
    model = models.Unet(8).eval()
    model.down[1].to(memory_format=torch.channels_last)
    model.up[0].half().float()
    reference, x = copy.deepcopy(model), torch.randn(1, 8, 16, 16)
    with busbound.offload(model, gpu_memory="1GB", resident=[], slots=2, **ON_CPU), mode():
        assert model.down[1].first.weight.stride() == reference.down[1].first.weight.stride()
        for _ in range(3):
            assert torch.equal(model(x), reference(x))


def test_weights_written_from_outside_are_copied_again():
    torch.manual_seed(0)
    model = models.Decoder(**SMALL)
    reference, ids = copy.deepcopy(model), words()
    with busbound.offload(model, gpu_memory="1GB", resident=[], slots=3, **ON_CPU), torch.no_grad():
        assert torch.equal(model(ids), reference(ids))
        changed = {name: 2 * each for name, each in reference.state_dict().items()}
        model.load_state_dict(changed)
        reference.load_state_dict(changed)
        assert torch.equal(model(ids), reference(ids))


def test_weights_that_got_other_memory_between_two_offloads_are_used():
    """A model that came on the GPU goes back there, and may be trained before its plan is used again."""
    torch.manual_seed(0)
    model, ids = models.Decoder(**SMALL), words()
    plan = busbound.offload.plan(model, gpu_memory="1GB", resident=[1], slots=2, **ON_CPU)
    for _ in range(2):
        expected = model(ids)
        with busbound.offload(model, plan), torch.no_grad():
            assert torch.equal(model(ids), expected)
        for each in model.parameters():
            each.data = each.data * 1.5


class Counting(torch.nn.Module):
    """Writes to a parameter in its forward pass."""

    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(8, 8)
        self.count = torch.nn.Parameter(torch.zeros(8), requires_grad=False)

    def forward(self, x):
        self.count.add_(1)
        return self.line(x) + self.count


def test_weights_written_by_the_forward_pass_stay_on_the_gpu():
    model = torch.nn.Sequential(*(Counting() for _ in range(4)))
    reference, x = copy.deepcopy(model), torch.randn(2, 8)
    with busbound.offload(model, gpu_memory="1GB", resident=[], slots=2, **ON_CPU) as run, torch.no_grad():
        for _ in range(5):
            assert torch.equal(model(x), reference(x))
        assert "the forward pass writes to it" in run.report().notes[0]
    assert torch.equal(model[3].count, reference[3].count)


class Recurrent(torch.nn.Module):
    """An LSTM keeps its weights in a list too."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.LSTM(16, 16, batch_first=True)
        self.scale = torch.nn.Parameter(torch.ones(16))

    def forward(self, x):
        return self.scale * self.layer(x)[0]


def test_weights_that_a_module_keeps_in_a_list_are_streamed_too():
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(Recurrent() for _ in range(4))).requires_grad_(False)
    reference, x = copy.deepcopy(model), torch.randn(2, 3, 16)
    with busbound.offload(model, gpu_memory="1GB", resident=[], slots=2, **ON_CPU) as run, torch.no_grad():
        for _ in range(3):
            assert torch.equal(model(x), reference(x))
        assert run.report().notes == []


class Watching(torch.nn.Module):
    """Says which parameter it computes with."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 8), requires_grad=False)
        self.weight.kind = "square"
        self.used = set()

    def forward(self, x):
        assert isinstance(self.weight, torch.nn.Parameter) and self.weight.kind == "square"
        self.used.add(self.weight.data_ptr())
        return x @ self.weight


def test_the_parameters_of_the_model_stay_the_same_objects_in_host_memory():
    model, reference = (torch.nn.Sequential(*(Watching() for _ in range(6))) for _ in range(2))
    reference.load_state_dict(model.state_dict())
    x = torch.randn(2, 8)
    own = [each.weight for each in model]
    with busbound.offload(model, gpu_memory="1GB", resident=[], slots=2, **ON_CPU), torch.no_grad():
        places = [each.data_ptr() for each in own]
        for _ in range(3):
            assert torch.equal(model(x), reference(x))
        assert all(each.weight is weight for each, weight in zip(model, own, strict=True))
        assert [each.data_ptr() for each in own] == places
        # The block computes with what is in one of two slots.
        assert len(set().union(*(each.used for each in model))) == 2
        assert not any(each.used & set(places) for each in model)


def test_a_parameter_assigned_meanwhile_is_used():
    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(4)))
    reference, x = copy.deepcopy(model), torch.randn(2, 8)
    with busbound.offload(model, gpu_memory="1GB", resident=[], slots=2, **ON_CPU), torch.no_grad():
        model(x)
        model[2].bias = torch.nn.Parameter(torch.ones(8))
        reference[2].bias = torch.nn.Parameter(torch.ones(8))
        for _ in range(2):
            assert torch.equal(model(x), reference(x))
    assert torch.equal(model[2].bias, torch.ones(8))


def test_a_parameter_removed_meanwhile_stays_removed():
    class Sparing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.spare = torch.nn.Linear(8, 8, bias=False)
            self.line = torch.nn.Linear(8, 8)

        def forward(self, x):
            return self.line(x)

    model = torch.nn.Sequential(*(Sparing() for _ in range(4)))
    reference, x = copy.deepcopy(model), torch.randn(2, 8)
    with busbound.offload(model, gpu_memory="1GB", resident=[], slots=2, **ON_CPU), torch.no_grad():
        model(x)
        del model[2].spare.weight
        own = model[2].line.weight
        for _ in range(2):
            assert torch.equal(model(x), reference(x))
        assert model[2].line.weight is own and "weight" not in model[2].spare._parameters


def test_host_time_is_the_engines_own():
    class Slow(torch.nn.Linear):
        def forward(self, x):
            time.sleep(0.02)
            return super().forward(x)

    model, x = torch.nn.Sequential(*(Slow(8, 8) for _ in range(4))), torch.randn(2, 8)
    with busbound.offload(model, gpu_memory="1GB", resident=[], slots=2, **ON_CPU) as run, torch.no_grad():
        for _ in range(3):
            model(x)
        assert 0 < run.report().host_us_per_block < 10_000


def test_a_model_that_fits_is_left_alone_with_one_line():
    model, ids = models.Decoder(**SMALL).eval(), words()
    forwards = [vars(layer).get("forward") for layer in model.layers]
    with busbound.offload(model, gpu_memory="1GB", **ON_CPU) as run, torch.no_grad():
        for _ in range(3):
            model(ids)
        line = "offload steps aside: all 5 blocks stay on the GPU, and a pass runs as without it"
        assert str(run.report()) == line and str(run.plan).splitlines()[0] == line
        assert [vars(layer).get("forward") for layer in model.layers] == forwards
    streamed = busbound.offload.plan(model, gpu_memory="1GB", resident=[0], **ON_CPU)
    assert streamed.aside is None and str(streamed).startswith("offload: 4 of 5 blocks streamed")


def test_explain_records_passes_and_writes_the_page(tmp_path, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    model, ids = models.Decoder(**SMALL).eval().requires_grad_(False), words()
    with busbound.offload(model, gpu_memory="1GB", resident=[], slots=2, **ON_CPU) as run:
        with pytest.raises(busbound.offload.OffloadError, match="give example_inputs"):
            run.explain()
        page = Path(run.explain(ids, passes=2, directory=str(tmp_path)))
        # Five that are timed, one that starts the profiler, and two that are recorded.
        assert len(run._engine.passes) == 8
    text = page.read_text(encoding="utf-8")
    page.unlink()
    (trace,) = tmp_path.iterdir()
    assert text.startswith("<!DOCTYPE html>") and trace.name in text
    with pytest.raises(busbound.offload.OffloadError, match="has ended"):
        run.explain(ids)
    # The plan knows its inputs.
    plan = busbound.offload.plan(model, ids, gpu_memory="1GB", resident=[], slots=2, compare=False, **ON_CPU)
    with busbound.offload(model, plan) as run:
        Path(run.explain(passes=1, directory=str(tmp_path))).unlink()


def test_models_that_run_one_after_another_share_the_memory():
    torch.manual_seed(0)
    encoder, denoiser = models.Decoder(**SMALL), models.Decoder(**SMALL)
    ids = words()
    expected = [each(ids).detach() for each in (encoder, denoiser)]
    layer = sum(each.nbytes for each in encoder.layers[0].parameters())
    outside = sum(each.nbytes for each in encoder.parameters()) - 5 * layer
    parts = {"encoder": (encoder, ids, 1), "denoiser": (denoiser, ids, 50)}
    # For both what is outside of the blocks and a ring of two, and four blocks more.
    memory = 2 * (outside + 32 * 2**20) + 8 * (layer + 4096)
    # A slow link: copies take longer than compute on any machine.
    together = busbound.offload.plan_together(parts, memory, "0.001", slots=2, **ON_CPU)
    assert len(together["encoder"].resident) < len(together["denoiser"].resident)
    assert "50 x" in str(together) and str(together).count("resident") == 2
    with busbound.offload(encoder, together["encoder"]), busbound.offload(denoiser, together["denoiser"]), torch.no_grad():
        assert same(expected, [encoder(ids), denoiser(ids)])
    with pytest.raises(busbound.offload.OffloadError, match="at least"):
        busbound.offload.plan_together(parts, 32 * 2**20, "h200", **ON_CPU)


def test_checkpointing_and_save_on_cpu_keep_working():
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(models.Decoder):
        def forward(self, ids):
            x = self.embed(ids)
            for number, layer in enumerate(self.layers):
                x = checkpoint(layer, x, use_reentrant=number % 2 == 0)
            return self.head(self.norm(x))

    torch.manual_seed(0)
    model = models.frozen(Checkpointed(**SMALL), lambda m: m.embed)
    expected = steps(copy.deepcopy(model), words)
    with busbound.offload(model, gpu_memory="1GB", resident=[], slots=2, **ON_CPU):
        assert same(expected, steps(model, words))
    plain = models.with_adapters(models.Decoder(**SMALL))
    expected = steps(copy.deepcopy(plain), words)
    with busbound.offload(plain, gpu_memory="1GB", resident=[], slots=2, **ON_CPU):
        assert same(expected, steps(plain, words, around=torch.autograd.graph.save_on_cpu))


@pytest.mark.parametrize("budget", [0, 20_000, 100_000, 10**9])
def test_activations_are_identical(budget):
    torch.manual_seed(0)
    model = models.Decoder(**SMALL)
    expected = steps(copy.deepcopy(model), words)
    kept = busbound.offload.activations(budget, device="cpu", smallest=0, in_flight=8_000)
    assert same(expected, steps(model, words, around=lambda: kept))
    assert kept.saved_bytes > 100_000
    if budget == 10**9:
        assert kept.offloaded_bytes == 0
    else:
        assert kept.saved_bytes - budget <= kept.offloaded_bytes <= kept.saved_bytes
    # Everything was given back.
    assert (kept._kept_bytes, kept._leaving_bytes, kept._back_bytes, kept._known) == (0, 0, 0, {})


def test_activations_and_weights_together():
    torch.manual_seed(0)
    model = models.with_adapters(models.Decoder(**SMALL))
    expected = steps(copy.deepcopy(model), words)
    with busbound.offload(model, gpu_memory="1GB", resident=[], slots=2, **ON_CPU):
        kept = busbound.offload.activations(0, device="cpu", smallest=0, in_flight=4_000)
        assert same(expected, steps(model, words, around=lambda: kept))
        assert kept.offloaded_bytes > 0


def test_blocks_are_the_children_of_the_largest_lists():
    assert [block.name for block in find_blocks(models.Decoder(**SMALL), smallest=0)] == [f"layers.{n}" for n in range(5)]
    unet = [block.name for block in find_blocks(models.Unet(8), smallest=4096)]
    assert unet == ["down.0", "down.1", "down.2", "up.0", "up.1", "up.2"]
    both = torch.nn.Sequential(models.Decoder(**SMALL), models.Decoder(**SMALL))
    assert [block.name for block in find_blocks(both, smallest=0)] == [f"{m}.layers.{n}" for m in range(2) for n in range(5)]


def test_what_cannot_work_is_refused_with_the_reason():
    model = models.Decoder(**SMALL)
    with (
        busbound.offload(model, gpu_memory="1GB", resident=[], **ON_CPU),
        pytest.raises(busbound.offload.OffloadError, match="torch.no_grad"),
    ):
        model(words())
    compiled = torch.compile(models.Decoder(**SMALL))
    with pytest.raises(busbound.offload.OffloadError, match="compiled"):
        busbound.offload(compiled, gpu_memory="1GB", **ON_CPU)
    if not torch.cuda.is_available():
        with pytest.raises(busbound.offload.OffloadError, match="no GPU"):
            busbound.offload(model, gpu_memory="1GB")


def write_safetensors(path, tensors):
    header, data = {}, b""
    kinds = {torch.float32: "F32", torch.bfloat16: "BF16"}
    for name, tensor in tensors.items():
        raw = bytes(tensor.contiguous().view(-1).view(torch.uint8).tolist())
        header[name] = {"dtype": kinds[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def test_files_are_loaded_into_a_model_without_memory(tmp_path):
    torch.manual_seed(0)
    model = models.TiedBlocks(**SMALL).to(torch.bfloat16).eval()
    write_safetensors(tmp_path / "model.safetensors", model.state_dict())
    with torch.device("meta"):
        empty = models.TiedBlocks(**SMALL).to(torch.bfloat16).eval()
    seen, ids = [], words()
    with busbound.offload.load(empty, tmp_path, "1GB", progress=lambda *at: seen.append(at), **ON_CPU), torch.no_grad():
        assert torch.equal(empty(ids), model(ids))
    assert seen[-1][0] > 0
    with pytest.raises(busbound.offload.OffloadError, match="is not a safetensors file"):
        (tmp_path / "other.safetensors").write_bytes(b"hello")
        busbound.offload.load(empty, tmp_path, "1GB", **ON_CPU)


def test_a_damaged_file_is_an_error(tmp_path):
    model = models.Mlp(8, 2)
    write_safetensors(tmp_path / "m.safetensors", model.state_dict())
    whole = (tmp_path / "m.safetensors").read_bytes()
    (tmp_path / "m.safetensors").write_bytes(whole[:-4])
    with pytest.raises(busbound.offload.OffloadError, match="damaged or incomplete"):
        busbound.offload.load(model, tmp_path / "m.safetensors", "1GB", **ON_CPU)
