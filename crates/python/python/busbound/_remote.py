"""Traces on object stores and everything else that fsspec supports: ``s3://``, ``gs://``, ``https://``, ``zip://…::s3://…``."""

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

#: File extensions of traces.
_SUFFIX = re.compile("(" + "|".join(re.escape(suffix) for suffix in _native.suffixes()) + ")$")


def is_address(path: object) -> bool:
    return isinstance(path, str) and "://" in path


@dataclass(frozen=True)
class RemoteFile:
    fs: Any
    path: str
    #: The name to show.
    name: str
    #: Bytes; 0 if the store does not report it.
    size: int

    @contextlib.contextmanager
    def fetched(self) -> Iterator[str]:
        """A temporary local copy: readers need to seek."""
        with tempfile.TemporaryDirectory(prefix="busbound-") as folder:
            suffix = _SUFFIX.search(self.name)
            path = os.path.join(folder, f"trace{suffix.group() if suffix else ''}")
            self.fs.get_file(self.path, path)
            yield path


def remote_files(address: str, storage_options: dict[str, Any]) -> list[RemoteFile]:
    """The files of an address, a pattern or a folder. A missing single file is an error only when it is read."""
    try:
        import fsspec
    except ImportError as error:
        raise _native.BusboundError(
            f"{address}: needs fsspec and its package for {address.split('://')[0]}: pip install fsspec"
        ) from error
    first, _, container = address.partition("::")
    is_web = first.startswith(("http://", "https://"))
    try:
        fs, path = fsspec.core.url_to_fs(address, **storage_options)
        # In a web address a question mark begins a query.
        if "*" in path if is_web else glob.has_magic(path):
            found = fs.glob(path, detail=True)
        elif not is_web and fs.isdir(path):
            found = {name: info for name, info in fs.find(path, detail=True).items() if _SUFFIX.search(name)}
        else:
            found = {path: {}}
    except FileNotFoundError as error:
        raise _native.NotFoundError(f"{address}: {error}") from error
    except OSError as error:
        raise _native.StorageError(f"{address}: {error}") from error
    except (ValueError, TypeError, ImportError) as error:
        # TypeError: an option that the file system does not have.
        raise _native.OptionError(f"{address}: {error}") from error
    if not found:
        raise _native.NotFoundError(f"no files match {address}")

    def named(path: str) -> str:
        name: str = fs.unstrip_protocol(path)
        # A query may contain a signature, which must stay private.
        name = name.partition("?")[0] if is_web else name
        return f"{name}::{container}" if container else name

    return [RemoteFile(fs, path, named(path), info.get("size") or 0) for path, info in sorted(found.items())]
