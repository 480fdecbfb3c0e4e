"""Traces on object stores and wherever else fsspec reaches: ``s3://``, ``gs://``, ``https://``, ``zip://…::s3://…``."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import tempfile
from dataclasses import dataclass

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

#: What traces end in.
_SUFFIX = re.compile("(" + "|".join(re.escape(suffix) for suffix in _native.suffixes()) + ")$")


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
            suffix = _SUFFIX.search(self.name)
            path = os.path.join(folder, f"trace{suffix.group() if suffix else ''}")
            self.fs.get_file(self.path, path)
            yield path


def remote_files(address: str, storage_options: dict[str, Any]) -> list[RemoteFile]:
    """What an address stands for; it may be a pattern or a folder. One file that is not there is found when it is read."""
    try:
        import fsspec
    except ImportError as error:
        raise _native.BusboundError(
            f"{address}: this needs fsspec and what it takes for {address.split('://')[0]}: pip install fsspec"
        ) from error
    first, _, container = address.partition("::")
    is_web = first.startswith(("http://", "https://"))
    try:
        fs, path = fsspec.core.url_to_fs(address, **storage_options)
        # In a web address a question mark begins a query.
        if "*" in path if is_web else glob.has_magic(path):
            found = fs.glob(path, detail=True)
        elif not is_web and fs.isdir(path):
            found = {name: told for name, told in fs.find(path, detail=True).items() if _SUFFIX.search(name)}
        else:
            found = {path: {}}
    except (OSError, ValueError, ImportError) as error:
        raise _native.BusboundError(f"{address}: {error}") from error
    if not found:
        raise _native.BusboundError(f"nothing is named like {address}")

    def named(path: str) -> str:
        name: str = fs.unstrip_protocol(path)
        # A query may hold a signature, which is nobody's business.
        name = name.partition("?")[0] if is_web else name
        return f"{name}::{container}" if container else name

    return [RemoteFile(fs, path, named(path), told.get("size") or 0) for path, told in sorted(found.items())]
