"""From safetensors files to an offloaded model, without a second copy of the weights in host memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from glob import glob
from os import PathLike
from time import perf_counter
from typing import Any

import torch

from ._handle import Handle
from ._plan import make_plan
from ._safetensors import Entry, entries_of
from ._sizes import OffloadError, text_of
from ._store import READ_INTO

_THREADS = 8


class _Progress:
    """One line that is rewritten, if somebody looks at it."""

    def __init__(self, total: int, report: Callable[[int, int], None] | None) -> None:
        self._total, self._done, self._began, self._shown = total, 0, perf_counter(), 0.0
        self._report = report if report is not None else self._print if sys.stderr.isatty() else None

    def add(self, nbytes: int) -> None:
        self._done += nbytes
        if self._report is not None:
            self._report(self._done, self._total)

    def _print(self, done: int, total: int) -> None:
        now = perf_counter()
        if done < total and now - self._shown < 0.2:
            return
        self._shown = now
        rate = done / max(now - self._began, 1e-9)
        end = "\n" if done >= total else ""
        print(f"\rloading {text_of(done)} of {text_of(total)}, {text_of(rate)}/s  ", end=end, file=sys.stderr, flush=True)


def load_model(
    model: Any,
    files: str | PathLike[str] | Sequence[str | PathLike[str]],
    gpu_memory: int | float | str | None = None,
    *,
    example_inputs: Any = None,
    machine: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Handle:
    """Reads blocks into their pinned buffers and the rest into its place, then offloads."""
    entries = entries_of(_paths(files))
    with ThreadPoolExecutor(_THREADS, "busbound-load") as threads:
        _bind(model, entries, threads, progress)
        plan = make_plan(model, None, gpu_memory, machine, **options)
        with torch.no_grad():
            for tensor in (*model.parameters(), *model.buffers()):
                source = getattr(tensor, READ_INTO, None)
                if source is not None:
                    source(tensor.data)
                    delattr(tensor, READ_INTO)
    if example_inputs is not None:
        plan = make_plan(model, example_inputs, gpu_memory, machine, store=plan.store, **options)
    return Handle(plan)


def _bind(model: Any, entries: dict[str, Entry], threads: ThreadPoolExecutor, progress: Callable[[int, int], None] | None) -> None:
    """Gives every parameter memory without touching it, and the function that reads its values."""
    bar = _Progress(sum(entry.nbytes for entry in entries.values()), progress)

    def read(entry: Entry, target: Any) -> None:
        entry.read_into(target, threads)
        bar.add(entry.nbytes)

    made: dict[int, Any] = {}
    missing: list[tuple[str, Any]] = []
    for prefix, module in model.named_modules():
        for kept in (module._parameters, module._buffers):
            for name, tensor in list(kept.items()):
                if tensor is None:
                    continue
                path = f"{prefix}.{name}" if prefix else name
                if id(tensor) not in made:
                    made[id(tensor)] = (tensor, _with_memory(tensor))
                new = made[id(tensor)][1]
                kept[name] = new
                if path in entries:
                    setattr(new, READ_INTO, partial(read, entries[path]))
                elif not hasattr(new, READ_INTO) and tensor.is_meta:
                    missing.append((path, new))
    absent = [path for path, new in missing if not hasattr(new, READ_INTO)]
    if absent:
        raise OffloadError(
            f"the files have no values for {', '.join(absent[:5])}{' …' if len(absent) > 5 else ''}, which are on the meta "
            "device: create buffers that are not saved on the CPU"
        )


def _with_memory(tensor: Any) -> Any:
    """The tensor, or if it has no data (meta device) one with memory that no page has been touched of."""
    if not tensor.is_meta:
        return tensor
    memory = torch.empty_like(tensor, device="cpu")
    return torch.nn.Parameter(memory, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else memory


def _paths(files: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[str]:
    given = [os.fspath(each) for each in ([files] if isinstance(files, (str, PathLike)) else files)]
    found: list[str] = []
    for each in given:
        if os.path.isdir(each):
            found += sorted(glob(os.path.join(each, "*.safetensors")))
        else:
            found.append(each)
    if not found:
        raise OffloadError(f"no safetensors files in {', '.join(given)}")
    return found
