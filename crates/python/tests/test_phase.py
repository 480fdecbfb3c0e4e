"""Phases are marked for every profiler, and only where there is one to mark them for."""

import contextlib
import sys
import types

import busbound


class Torch(types.SimpleNamespace):
    """What of torch is used, and a list of what was called."""

    def __init__(self, has_gpu):
        said = []

        @contextlib.contextmanager
        def record_function(name):
            said.append(("begin", name))
            yield
            said.append(("end", name))

        nvtx = types.SimpleNamespace(
            range_push=lambda name: said.append(("push", name)), range_pop=lambda: said.append(("pop",))
        )
        cuda = types.SimpleNamespace(is_available=lambda: has_gpu, init=lambda: said.append(("init",)), nvtx=nvtx)
        super().__init__(said=said, cuda=cuda, profiler=types.SimpleNamespace(record_function=record_function))


MARK = "busbound:phase=load"


def test_a_phase_is_marked_for_torch_profiler_and_for_the_recorder(monkeypatch):
    torch = Torch(has_gpu=True)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.delenv("CUDA_INJECTION64_PATH", raising=False)
    with busbound.phase("load"):
        torch.said.append(("body",))
    assert torch.said == [("begin", MARK), ("push", MARK), ("body",), ("pop",), ("end", MARK)]


def test_under_the_recorder_cuda_starts_before_the_mark(monkeypatch):
    torch = Torch(has_gpu=True)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "/somewhere/library.so")
    with busbound.phase("load"):
        pass
    assert torch.said.index(("init",)) < torch.said.index(("push", MARK))


def test_a_phase_that_fails_ends(monkeypatch):
    torch = Torch(has_gpu=True)
    monkeypatch.setitem(sys.modules, "torch", torch)
    with contextlib.suppress(ValueError), busbound.phase("load"):
        raise ValueError
    assert ("pop",) in torch.said


def test_without_torch_or_a_gpu_nothing_is_asked_of_cuda(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with busbound.phase("load"):
        pass
    torch = Torch(has_gpu=False)
    monkeypatch.setitem(sys.modules, "torch", torch)
    with busbound.phase("load"):
        pass
    assert torch.said == [("begin", MARK), ("end", MARK)]
