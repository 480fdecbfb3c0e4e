"""Traces, and the questions they are asked."""

from __future__ import annotations

import os

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Union

    from .results import Comparison, Diagnosis, FleetAnswer, RankSummary, Survey, WhatIf

    Path = str | os.PathLike[str]
    Run = Union[Path, "Trace"]  # noqa: UP007 — a name in quotes has no |


class Trace:
    """A trace that has been read; ``busbound.open`` makes one.

    It is held in memory, about 100 bytes an event, for as long as this object or a table of it is.
    Every question may be asked from several threads: the interpreter runs on meanwhile.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Trace) -> None:
        self._native = native

    @property
    def path(self) -> str:
        """The file it was read from."""
        return self._native.path

    def __len__(self) -> int:
        """Events that were read."""
        return len(self._native)

    def __repr__(self) -> str:
        return f"<busbound.Trace {self.path}: {len(self)} events>"

    def diagnose(
        self, *, machine: Path | None = None, steps: str | None = None, warmup: int | None = None
    ) -> Diagnosis:
        """Is the GPU waiting for the bus, where, why, and what would a change gain?

        machine: what ``--machine`` takes: a profile that ``busbound bench`` wrote (a path that ends in .json), a link
            (``"pcie4x16"``), a GPU (``"h100-pcie"``) or a rate in GB/s. Without it the link goes by the GPU's name.
        steps: a regular expression for the annotations that mark steps.
        warmup: how many steps at the beginning to leave out.
        """
        from .results import Diagnosis

        return Diagnosis._of(self._native.diagnose(_machine(machine), steps, warmup))

    def survey(self) -> Survey:
        """What is in this trace, and what is missing from it?"""
        from .results import Survey

        return Survey._of(self._native.survey())

    def whatif(
        self,
        apply: str | Sequence[str] = (),
        *,
        machine: Path | None = None,
        steps: str | None = None,
        warmup: int | None = None,
    ) -> WhatIf:
        """What would the run take with these changes made, in order? Without any: what is worth trying, the best first.

        apply: ``"pin"``, ``"prefetch=N"``, ``"async"``, ``"coalesce"``, ``"nosync"``, ``"link=NAME"``, ``"resident=N%"``.
        """
        from .results import WhatIf

        changes = [apply] if isinstance(apply, str) else list(apply)
        return WhatIf._of(self._native.whatif(changes, _machine(machine), steps, warmup))

    def events(self, *, steps: str | None = None, warmup: int | None = None) -> _native.Table:
        """Everything that was recorded, in the order of the file: docs/tables.md has the columns."""
        return self._native.table("events", steps, warmup)

    def copies(self, *, steps: str | None = None, warmup: int | None = None) -> _native.Table:
        """Every copy: what it moved, how fast, how much of it was exposed, and who waited for it."""
        return self._native.table("copies", steps, warmup)

    def gaps(self, *, steps: str | None = None, warmup: int | None = None) -> _native.Table:
        """Every time that a device had nothing to do, and why."""
        return self._native.table("gaps", steps, warmup)

    def steps(self, *, steps: str | None = None, warmup: int | None = None) -> _native.Table:
        """Every step, and what the devices did in it."""
        return self._native.table("steps", steps, warmup)


def open(path: Path, *, threads: int | None = None, **storage_options: Any) -> Trace:
    """Reads a trace: torch.profiler's .json and .json.gz, Nsight Systems' .sqlite exports, JAX's
    .xplane.pb, ``busbound record``'s .bbt.

    path: of a file (a .nsys-rep too, where nsys is installed to export it), or an address that fsspec knows (``"s3://traces/rank-0.json.gz"``), which is fetched first.
    threads: to read with; one for each core unless said.
    storage_options: for fsspec, as ``fsspec.open`` takes them.

    Cut and damaged files give every event that can be read; ``survey()`` says what was lost. BusboundError if nothing
    can be read at all.
    """
    from ._remote import is_address, remote_files

    if not is_address(path):
        return read(path, None, threads)
    files = remote_files(str(path), storage_options)
    if len(files) > 1:
        raise _native.BusboundError(f"{path} stands for {len(files)} files, and one is read at a time")
    try:
        with files[0].fetched() as local:
            return read(local, files[0].name, threads)
    except OSError as error:
        raise _native.BusboundError(f"{files[0].name}: {error}") from error


def read(path: Path, name: str | None, threads: int | None) -> Trace:
    """A file that lies here, by this name where it goes by another."""
    return Trace(_native.open(path, name, threads))


def compare(
    *runs: Run | Diagnosis,
    label: tuple[str, Sequence[float]] | None = None,
    machine: Path | None = None,
    steps: str | None = None,
    warmup: int | None = None,
) -> Comparison:
    """What changed between two runs, or along a sweep?

    runs: paths, traces or diagnoses, two or more.
    label: for a sweep, what changes and its values: ``("batch", [2, 4, 8])``.
    The rest goes to ``Trace.diagnose``, for runs that are not diagnosed yet.
    """
    from .results import Comparison

    if len(runs) < 2:
        raise _native.BusboundError("compare takes two runs or more")
    answers = [_diagnosis(run, machine, steps, warmup)._native for run in runs]
    return Comparison._of(_native.compare(answers, label))


def whatif(
    run: Run,
    apply: str | Sequence[str] = (),
    *,
    machine: Path | None = None,
    steps: str | None = None,
    warmup: int | None = None,
) -> WhatIf:
    """What would a run take with changes made? As ``Trace.whatif``, for a path too."""
    return _trace(run).whatif(apply, machine=machine, steps=steps, warmup=warmup)


def summarize(
    run: Run | Diagnosis,
    *,
    host: str | None = None,
    machine: Path | None = None,
    steps: str | None = None,
    warmup: int | None = None,
) -> RankSummary:
    """A few kilobytes that stand for one rank when many are laid side by side. Of a path, a trace or a diagnosis.

    host: the machine that the rank ran on, where the trace does not tell.
    """
    from .results import RankSummary

    return RankSummary._of(_native.summarize(_diagnosis(run, machine, steps, warmup)._native, host))


def merge(summaries: Iterable[RankSummary | str], *, topology: Path | None = None) -> FleetAnswer:
    """How do the ranks differ? Of what ``summarize`` gave, or its JSON; the order does not matter.

    topology: how the machine is wired, a file that ``busbound topo`` or NCCL wrote: then also which ranks share a way to the host.
    """
    from .results import FleetAnswer

    texts = [summary if isinstance(summary, str) else summary.to_json() for summary in summaries]
    return FleetAnswer._of(_native.merge(texts, topology))


def _trace(run: Run) -> Trace:
    return run if isinstance(run, Trace) else open(run)


def _diagnosis(
    run: Run | Diagnosis, machine: Path | None, steps: str | None, warmup: int | None
) -> Diagnosis:
    from .results import Diagnosis

    if isinstance(run, Diagnosis):
        return run
    return _trace(run).diagnose(machine=machine, steps=steps, warmup=warmup)


def _machine(machine: Path | None) -> str | None:
    return None if machine is None else os.fspath(machine)
