"""Traces and their analyses."""

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
    """A trace in memory; ``busbound.open`` returns one.

    It uses about 100 bytes per event, for as long as this object or one of its tables exists.
    All methods are thread-safe and release the GIL.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Trace) -> None:
        self._native = native

    @property
    def path(self) -> str:
        """The file it was read from."""
        return self._native.path

    def __len__(self) -> int:
        """Number of events that were read."""
        return len(self._native)

    def __repr__(self) -> str:
        return f"<busbound.Trace {self.path}: {len(self)} events>"

    def diagnose(
        self,
        *,
        machine: Path | None = None,
        steps: str | None = None,
        warmup: int | None = None,
        wall_ms: float | None = None,
    ) -> Diagnosis:
        """Is the GPU waiting for the bus, where, why, and which change saves how much?

        machine: same as ``--machine``: a profile from ``busbound bench`` (a path that ends in .json), a link
            (``"pcie4x16"``), a GPU (``"h100-pcie"``) or a rate in GB/s. The default link is that of the GPU's name.
        steps: a regular expression for the annotations that mark steps.
        warmup: number of warm-up steps to skip.
        wall_ms: milliseconds of a step without the profiler, if you timed it; same as ``--wall``.
        """
        from .results import Diagnosis

        return Diagnosis._of(self._native.diagnose(_machine(machine), steps, warmup, wall_ms))

    def survey(self) -> Survey:
        """What does this trace contain, and what is missing?"""
        from .results import Survey

        return Survey._of(self._native.survey())

    def whatif(
        self,
        apply: str | Sequence[str] = (),
        *,
        machine: Path | None = None,
        steps: str | None = None,
        warmup: int | None = None,
        wall_ms: float | None = None,
    ) -> WhatIf:
        """How long would a step take with these changes, applied in order? Without changes: which are worth it, best first.

        apply: ``"pin"``, ``"prefetch=N"``, ``"async"``, ``"coalesce"``, ``"nosync"``, ``"link=NAME"``, ``"resident=N%"``.
        """
        from .results import WhatIf

        changes = [apply] if isinstance(apply, str) else list(apply)
        return WhatIf._of(self._native.whatif(changes, _machine(machine), steps, warmup, wall_ms))

    def events(self, *, steps: str | None = None, warmup: int | None = None) -> _native.Table:
        """All recorded events, in file order. docs/tables.md describes the columns."""
        return self._native.table("events", steps, warmup)

    def copies(self, *, steps: str | None = None, warmup: int | None = None) -> _native.Table:
        """Every copy: its bytes, its rate, how much of it was exposed, and what waited for it."""
        return self._native.table("copies", steps, warmup)

    def gaps(self, *, steps: str | None = None, warmup: int | None = None) -> _native.Table:
        """Every gap in which a device was idle, and its cause."""
        return self._native.table("gaps", steps, warmup)

    def steps(self, *, steps: str | None = None, warmup: int | None = None) -> _native.Table:
        """Every step and how the devices spent it."""
        return self._native.table("steps", steps, warmup)


def open(path: Path, *, threads: int | None = None, **storage_options: Any) -> Trace:
    """Reads a trace: torch.profiler's .json and .json.gz, Nsight Systems' .sqlite exports, JAX's
    .xplane.pb, ``busbound record``'s .bbt.

    path: a file (also a .nsys-rep if nsys is installed to export it), or an fsspec address
        (``"s3://traces/rank-0.json.gz"``), which is downloaded first.
    threads: number of threads to read with; by default one per core.
    storage_options: for fsspec, same as in ``fsspec.open``.

    Truncated and damaged files are read as far as possible; ``survey()`` shows what was lost. Raises BusboundError if
    nothing can be read.
    """
    from ._remote import is_address, remote_files

    if not is_address(path):
        return read(path, None, threads)
    files = remote_files(str(path), storage_options)
    if len(files) > 1:
        raise _native.BusboundError(f"{path} matches {len(files)} files: give one file")
    try:
        with files[0].fetched() as local:
            return read(local, files[0].name, threads)
    except OSError as error:
        raise _native.BusboundError(f"{files[0].name}: {error}") from error


def read(path: Path, name: str | None, threads: int | None) -> Trace:
    """Reads a local file, shown under another name if one is given."""
    return Trace(_native.open(path, name, threads))


def compare(
    *runs: Run | Diagnosis,
    label: tuple[str, Sequence[float]] | None = None,
    machine: Path | None = None,
    steps: str | None = None,
    warmup: int | None = None,
) -> Comparison:
    """What changed between two runs, or across a sweep?

    runs: two or more paths, traces or diagnoses.
    label: for a sweep, the parameter and its values: ``("batch", [2, 4, 8])``.
    machine, steps, warmup: as in ``Trace.diagnose``; not used for runs that are already diagnosed.
    """
    from .results import Comparison

    if len(runs) < 2:
        raise _native.BusboundError("compare needs two runs or more")
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
    """How long would a step take with changes? Same as ``Trace.whatif``; also accepts a path."""
    return _trace(run).whatif(apply, machine=machine, steps=steps, warmup=warmup)


def summarize(
    run: Run | Diagnosis,
    *,
    host: str | None = None,
    machine: Path | None = None,
    steps: str | None = None,
    warmup: int | None = None,
) -> RankSummary:
    """A summary of one rank, a few kilobytes, for ``merge``. Accepts a path, a trace or a diagnosis.

    host: the machine that the rank ran on, if the trace does not record it.
    """
    from .results import RankSummary

    return RankSummary._of(_native.summarize(_diagnosis(run, machine, steps, warmup)._native, host))


def merge(summaries: Iterable[RankSummary | str], *, topology: Path | None = None) -> FleetAnswer:
    """How do the ranks differ? Accepts results of ``summarize`` or their JSON, in any order.

    topology: a topology file from ``busbound topo`` or NCCL; adds which ranks share a PCIe uplink.
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
