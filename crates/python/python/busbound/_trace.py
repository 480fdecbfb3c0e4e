"""Traces and their analyses."""

from __future__ import annotations

import os

from . import _native
from ._options import checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Union

    from .results import Comparison, Diagnosis, FleetAnswer, RankSummary, Survey, WhatIf

    Path = str | os.PathLike[str]
    Run = Union[Path, "Trace"]  # noqa: UP007 — a name in quotes has no |


class Trace:
    """A trace in memory; ``busbound.open`` returns one.

    It uses about 100 bytes per event, for as long as this object or one of its tables exists.
    All methods are thread-safe and release the GIL.
    """

    __slots__ = ("__weakref__", "_file", "_native", "_storage_options")

    def __init__(
        self, native: _native.Trace, file: str | None = None, storage_options: Mapping[str, Any] | None = None
    ) -> None:
        self._native = native
        #: Where it can be read again.
        self._file = native.path if file is None else file
        self._storage_options = storage_options

    @property
    def path(self) -> str:
        """The file it was read from."""
        return self._native.path

    def __len__(self) -> int:
        """Number of events that were read."""
        return len(self._native)

    def __repr__(self) -> str:
        return f"<busbound.Trace {self.path}: {len(self)} events>"

    @checked
    def diagnose(
        self,
        *,
        machine: Path | None = None,
        steps: str | None = None,
        warmup: int | None = None,
        wall_ms: float | None = None,
    ) -> Diagnosis:
        """Is the GPU waiting for the bus, where, why, and which change saves how much?

        Args:
            machine: Same as ``--machine``: a profile from ``busbound bench`` (a path that ends in .json), a link
                (``"pcie4x16"``), a GPU (``"h100-pcie"``) or a rate in GB/s. The default link is that of the GPU's name.
            steps: A regular expression for the annotations that mark steps.
            warmup: Number of warm-up steps to skip.
            wall_ms: Milliseconds of a step without the profiler, if you timed it; same as ``--wall``.

        Returns:
            The diagnosis. A notebook shows it as a card; ``print`` shows what the command prints.

        Raises:
            OptionError: The machine is unknown, or an option makes no sense. Also a ``ValueError``.
            NotFoundError: The machine is a profile that does not exist. Also a ``FileNotFoundError``.
        """
        from ._source import Source
        from .results import Diagnosis

        options = (_machine(machine), steps, warmup, wall_ms)
        answer = self._native.diagnose(*options)
        return Diagnosis._of(answer, Source(self, self._file, len(self), options))

    def survey(self) -> Survey:
        """What does this trace contain, and what is missing?

        Returns:
            The survey, with what was lost in reading.
        """
        from .results import Survey

        return Survey._of(self._native.survey())

    @checked
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

        Args:
            apply: ``"pin"``, ``"prefetch=N"``, ``"async"``, ``"coalesce"``, ``"nosync"``, ``"link=NAME"``,
                ``"resident=N%"``: one, or several that are made together.
            machine: As in ``diagnose``.
            steps: As in ``diagnose``.
            warmup: As in ``diagnose``.
            wall_ms: As in ``diagnose``.

        Returns:
            The predicted step times, each as a range.

        Raises:
            OptionError: There is no such change, or an option makes no sense. Also a ``ValueError``.
            BusboundError: The trace has nothing that can be replayed.
        """
        from .results import WhatIf

        changes = [apply] if isinstance(apply, str) else list(apply)
        return WhatIf._of(self._native.whatif(changes, _machine(machine), steps, warmup, wall_ms))

    @checked
    def events(self, *, steps: str | None = None, warmup: int | None = None) -> _native.Table:
        """All recorded events, in file order. docs/tables.md describes the columns.

        Args:
            steps: As in ``diagnose``.
            warmup: As in ``diagnose``.

        Returns:
            The rows, as Arrow.
        """
        return self._native.table("events", steps, warmup)

    @checked
    def copies(self, *, steps: str | None = None, warmup: int | None = None) -> _native.Table:
        """Every copy: its bytes, its rate, how much of it was exposed, and what waited for it.

        Args:
            steps: As in ``diagnose``.
            warmup: As in ``diagnose``.

        Returns:
            The rows, as Arrow.
        """
        return self._native.table("copies", steps, warmup)

    @checked
    def collectives(self, *, steps: str | None = None, warmup: int | None = None) -> _native.Table:
        """Every communication kernel: its operation, message, rate and waiting.

        Args:
            steps: As in ``diagnose``.
            warmup: As in ``diagnose``.

        Returns:
            The rows, as Arrow.
        """
        return self._native.table("collectives", steps, warmup)

    @checked
    def gaps(self, *, steps: str | None = None, warmup: int | None = None) -> _native.Table:
        """Every gap in which a device was idle, and its cause.

        Args:
            steps: As in ``diagnose``.
            warmup: As in ``diagnose``.

        Returns:
            The rows, as Arrow.
        """
        return self._native.table("gaps", steps, warmup)

    @checked
    def steps(self, *, steps: str | None = None, warmup: int | None = None) -> _native.Table:
        """Every step and how the devices spent it.

        Args:
            steps: As in ``diagnose``.
            warmup: As in ``diagnose``.

        Returns:
            The rows, as Arrow.
        """
        return self._native.table("steps", steps, warmup)


@checked
def open(path: Path, *, threads: int | None = None, storage_options: Mapping[str, Any] | None = None) -> Trace:
    """Reads a trace: torch.profiler's .json and .json.gz, Nsight Systems' .sqlite exports, JAX's .xplane.pb, ``busbound record``'s .bbt.

    Truncated and damaged files are read as far as possible; ``survey()`` shows what was lost.

    Args:
        path: A file (also a .nsys-rep if nsys is installed to export it), or an fsspec address
            (``"s3://traces/rank-0.json.gz"``), which is downloaded first.
        threads: Number of threads to read with; by default one per core.
        storage_options: For an address, the options of its fsspec file system, as in ``pandas.read_csv``:
            ``{"anon": True}``.

    Returns:
        The trace.

    Raises:
        NotFoundError: The file does not exist. Also a ``FileNotFoundError``.
        UnreadableError: Nothing in the file can be read as a trace. Also a ``ValueError``.
        StorageError: The storage failed; a retry may succeed. Also an ``OSError``.
    """
    from ._remote import is_address, remote_files

    if not is_address(path):
        if storage_options:
            raise _native.OptionError(f"{os.fspath(path)}: storage_options are for addresses such as s3://bucket/trace.json.gz")
        return read(path, None, threads)
    files = remote_files(str(path), dict(storage_options or {}))
    if len(files) > 1:
        raise _native.OptionError(f"{path} matches {len(files)} files: give one file")
    with files[0].fetched() as local:
        return Trace(_native.open(local, files[0].name, threads), str(path), storage_options)


def read(path: Path, name: str | None, threads: int | None) -> Trace:
    """Reads a local file, shown under another name if one is given."""
    return Trace(_native.open(path, name, threads), os.path.abspath(path))


@checked
def compare(
    *runs: Run | Diagnosis,
    label: tuple[str, Sequence[float]] | None = None,
    machine: Path | None = None,
    steps: str | None = None,
    warmup: int | None = None,
) -> Comparison:
    """What changed between two runs, or across a sweep?

    Args:
        *runs: Two or more paths, traces or diagnoses.
        label: For a sweep, the parameter and its values: ``("batch", [2, 4, 8])``.
        machine: As in ``Trace.diagnose``; not used for runs that are already diagnosed.
        steps: The same.
        warmup: The same.

    Returns:
        The comparison.

    Raises:
        OptionError: There are fewer than two runs, or the label does not fit them. Also a ``ValueError``.
    """
    from .results import Comparison

    if len(runs) < 2:
        raise _native.OptionError("compare needs two runs or more")
    answers = [_native_of(_diagnosis(run, machine, steps, warmup)) for run in runs]
    return Comparison._of(_native.compare(answers, label))


@checked
def whatif(
    run: Run,
    apply: str | Sequence[str] = (),
    *,
    machine: Path | None = None,
    steps: str | None = None,
    warmup: int | None = None,
) -> WhatIf:
    """How long would a step take with changes? Same as ``Trace.whatif``; also accepts a path.

    Args:
        run: A path or a trace.
        apply: The changes, as in ``Trace.whatif``.
        machine: As in ``Trace.diagnose``.
        steps: As in ``Trace.diagnose``.
        warmup: As in ``Trace.diagnose``.

    Returns:
        The predicted step times, each as a range.
    """
    return _trace(run).whatif(apply, machine=machine, steps=steps, warmup=warmup)


@checked
def summarize(
    run: Run | Diagnosis,
    *,
    host: str | None = None,
    machine: Path | None = None,
    steps: str | None = None,
    warmup: int | None = None,
) -> RankSummary:
    """A summary of one rank, a few kilobytes, for ``merge``. Accepts a path, a trace or a diagnosis.

    Args:
        run: A path, a trace or a diagnosis.
        host: The machine that the rank ran on, if the trace does not record it.
        machine: As in ``Trace.diagnose``; not used for a diagnosis.
        steps: The same.
        warmup: The same.

    Returns:
        The summary.
    """
    from .results import RankSummary

    return RankSummary._of(_native.summarize(_native_of(_diagnosis(run, machine, steps, warmup)), host))


@checked
def merge(summaries: Iterable[RankSummary | str], *, topology: Path | None = None) -> FleetAnswer:
    """How do the ranks differ? Accepts results of ``summarize`` or their JSON, in any order.

    Args:
        summaries: Results of ``summarize``, or their JSON.
        topology: A topology file from ``busbound topo`` or NCCL; adds which ranks share a PCIe uplink.

    Returns:
        How the ranks differ.

    Raises:
        OptionError: There is no summary. Also a ``ValueError``.
        UnreadableError: A text is not a summary. Also a ``ValueError``.
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


def _native_of(diagnosis: Diagnosis) -> _native.Answer:
    """The native half; of a diagnosis that was pickled, from its trace."""
    if isinstance(diagnosis._native, _native.Answer):
        return diagnosis._native
    if diagnosis._source is None:
        raise _native.NotFoundError("a diagnosis that was pickled is compared by its trace, and that is unknown")
    again = diagnosis._source.diagnosis()._native
    assert isinstance(again, _native.Answer)
    return again


def _machine(machine: Path | None) -> str | None:
    return None if machine is None else os.fspath(machine)
