"""Traces on object stores and wherever else fsspec reaches: ``s3://``, ``gs://``, ``https://``, ``zip://…::s3://…``."""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def is_address(path: object) -> bool:
    return isinstance(path, str) and "://" in path


@dataclass(frozen=True)
class RemoteFile:
    fs: Any
    path: str
    #: As a person would write it.
    name: str
    #: Bytes; 0 where the store does not tell.
    size: int

    @contextlib.contextmanager
    def fetched(self) -> Iterator[str]:
        """The file here, for as long as it is read: readers go back and forth in it."""
        with tempfile.TemporaryDirectory(prefix="busbound-") as folder:
            path = os.path.join(folder, os.path.basename(self.path) or "trace")
            self.fs.get_file(self.path, path)
            yield path


def remote_files(address: str, storage_options: dict[str, Any]) -> list[RemoteFile]:
    """What an address stands for; it may be a pattern."""
    try:
        import fsspec
    except ImportError as error:
        raise _native.BusboundError(
            f"{address}: this needs fsspec and what it takes for {address.split('://')[0]}: pip install fsspec"
        ) from error
    try:
        opened = fsspec.open_files(address, "rb", **storage_options)
        files = [RemoteFile(one.fs, one.path, one.full_name, one.fs.size(one.path) or 0) for one in opened]
    except (OSError, ValueError, ImportError) as error:
        raise _native.BusboundError(f"{address}: {error}") from error
    if not files:
        raise _native.BusboundError(f"nothing is named like {address}")
    return files
