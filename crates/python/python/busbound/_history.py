"""What changed in a job over time, from the summaries of its ranks: in folders here, or on object stores."""

from __future__ import annotations

import os

from . import _native
from ._options import checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeVar

    from ._remote import Address, RemoteFile
    from .results import History

    Path = str | os.PathLike[str]
    #: The job's name, the names and texts of its summaries, and the names of those that could not be read, with the reason.
    Read = tuple[str, list[tuple[str, str]], list[tuple[str, str]]]
    T = TypeVar("T")
    R = TypeVar("R")

#: File extensions of summaries, as in the command.
_SUMMARIES = (".rank.json", ".fleet.json")
#: Requests to a store at the same time: a summary is a few kilobytes, so what takes time is the way there and back.
_REQUESTS = 16


@checked
def history(
    *paths: Path, parquet: Path | None = None, storage_options: Mapping[str, Any] | None = None
) -> History:
    """When did jobs become slower or faster, on which ranks, and what in the step? Reads results of ``summarize`` or
    ``busbound record --every``.

    Args:
        *paths: The summaries of one job each: a folder, with the folders below it, a file or a pattern; also fsspec
            addresses (``"s3://bucket/summaries/job7"``). A pattern that matches only folders is one job per folder.
        parquet: Also write the recordings as Parquet files, in folders by job, rank and day, to this folder or address.
        storage_options: The options of the addresses' fsspec file system, as in ``busbound.open``.

    Returns:
        The changes. A file that could not be read is in ``unread``.

    Raises:
        OptionError: There is no path, or an option makes no sense. Also a ``ValueError``.
        NotFoundError: A path does not exist, or has no summaries. Also a ``FileNotFoundError``.
        UnreadableError: None of the files is a summary. Also a ``ValueError``.
        StorageError: The storage failed, for listing or for all files of a job. Also an ``OSError``.
    """
    from ._remote import Address, is_address
    from .results import History

    if not paths:
        raise _native.OptionError("history needs one path or more")
    options = dict(storage_options or {})
    if options and not any(map(is_address, (*paths, parquet))):
        raise _native.OptionError(f"{os.fspath(paths[0])}: storage_options are for addresses such as s3://bucket/summaries")
    jobs: list[Read | str] = []
    for path in paths:
        if is_address(path):
            address = Address.of(str(path), options)
            jobs += [_read(job) for job in address.folders() or [address]]
        else:
            jobs.append(os.fspath(path))
    if not is_address(parquet):
        return History._of(_native.history(jobs, parquet))
    return _uploaded(Address.of(str(parquet), options), lambda folder: History._of(_native.history(jobs, folder)))


def _read(job: Address) -> Read:
    """The summaries of a job on a store."""
    files = job.files(_SUMMARIES)
    texts, failures, storage = [], [], None
    for file, (text, error) in zip(files, _at_once(_text, files), strict=True):
        if error is None:
            texts.append((file.name, text))
        else:
            failures.append((file.name, f"{file.name}: {error}"))
            storage = storage or (None if isinstance(error, UnicodeDecodeError) else error)
    if storage is not None and not texts:
        family = _native.NotFoundError if isinstance(storage, FileNotFoundError) else _native.StorageError
        raise family(failures[0][1]) from storage
    return job.name, texts, failures


def _text(file: RemoteFile) -> tuple[str, Exception | None]:
    """The text of a file, or why there is none."""
    try:
        return file.fs.cat_file(file.path).decode(), None
    # Clients of stores have errors of their own; one file must not stop the others.
    except Exception as error:  # noqa: BLE001
        return "", error


def _uploaded(target: Address, write: Callable[[str], R]) -> R:
    """Writes files to a temporary folder, and copies them to a store."""
    import tempfile

    from ._remote import storage_errors

    with tempfile.TemporaryDirectory(prefix="busbound-") as folder:
        result = write(folder)
        files = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]

        def upload(file: str) -> None:
            path = "/".join([target.path.rstrip("/"), *os.path.relpath(file, folder).split(os.sep)])
            target.fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            target.fs.put_file(file, path)

        with storage_errors(target.name):
            _at_once(upload, files)
    return result


def _at_once(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    from concurrent.futures import ThreadPoolExecutor

    threads = ThreadPoolExecutor(_REQUESTS, "busbound-store")
    try:
        return list(threads.map(function, items))
    finally:
        # After Ctrl-C or an error, what has not begun is left out.
        threads.shutdown(cancel_futures=True)
