"""Files on object stores and everything else that fsspec supports: ``s3://``, ``gs://``, ``https://``, ``zip://…::s3://…``."""

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
    from collections.abc import Iterator, Sequence
    from typing import Any

#: File extensions of traces.
TRACES = tuple(_native.suffixes())


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
        """A temporary local copy of a trace: readers need to seek."""
        with tempfile.TemporaryDirectory(prefix="busbound-") as folder:
            suffix = _ending_in(TRACES).search(self.name)
            path = os.path.join(folder, f"trace{suffix.group() if suffix else ''}")
            with storage_errors(self.name):
                self.fs.get_file(self.path, path)
            yield path


@dataclass(frozen=True)
class Address:
    """Where files are: one file, a folder or a pattern."""

    given: str
    fs: Any
    path: str

    @classmethod
    def of(cls, given: str, storage_options: dict[str, Any]) -> Address:
        try:
            import fsspec
        except ImportError as error:
            raise _native.BusboundError(
                f"{given}: needs fsspec and its package for {given.split('://')[0]}: pip install fsspec"
            ) from error
        with storage_errors(_without_query(given)):
            fs, path = fsspec.core.url_to_fs(given, **storage_options)
            # File systems are kept by fsspec, with what they listed before.
            fs.invalidate_cache()
        return cls(given, fs, path)

    @property
    def is_web(self) -> bool:
        return _is_web(self.given)

    @property
    def name(self) -> str:
        """The name to show."""
        return _without_query(self.given)

    def is_pattern(self) -> bool:
        # In a web address a question mark begins a query.
        return "*" in self.path if self.is_web else glob.has_magic(self.path)

    def files(self, suffixes: Sequence[str]) -> list[RemoteFile]:
        """The files. In a folder, those with these suffixes. A missing single file is an error only when it is read."""
        with storage_errors(self.name):
            if self.is_pattern():
                found = self.fs.glob(self.path, detail=True)
            elif not self.is_web and self.fs.isdir(self.path):
                ending = _ending_in(suffixes)
                found = {path: info for path, info in self.fs.find(self.path, detail=True).items() if ending.search(path)}
            else:
                found = {self.path: {}}
        if not found and self.is_pattern():
            raise _native.NotFoundError(f"no files match {self.name}")
        if not found:
            raise _native.NotFoundError(f"{self.name}: nothing in it ends in {' or '.join(suffixes)}")
        return [RemoteFile(self.fs, path, self._name_of(path), info.get("size") or 0) for path, info in sorted(found.items())]

    def folders(self) -> list[Address]:
        """What a pattern matches, if these are folders only."""
        if not self.is_pattern():
            return []
        with storage_errors(self.name):
            found = self.fs.glob(self.path.rstrip("/"), detail=True)
        if any(info.get("type") != "directory" for info in found.values()):
            return []
        return [Address(self._name_of(path), self.fs, path) for path in sorted(found)]

    def _name_of(self, path: str) -> str:
        container = self.given.partition("::")[1:]
        return _without_query("".join([self.fs.unstrip_protocol(path), *container]))


@contextlib.contextmanager
def storage_errors(name: str) -> Iterator[None]:
    """Errors of a file system become busbound's."""
    try:
        yield
    except _native.BusboundError:
        raise
    except FileNotFoundError as error:
        raise _native.NotFoundError(f"{name}: {error}") from error
    except OSError as error:
        raise _native.StorageError(f"{name}: {error}") from error
    except (ValueError, TypeError, ImportError) as error:
        # TypeError: an option that the file system does not have.
        raise _native.OptionError(f"{name}: {error}") from error
    # Clients of stores have errors of their own: missing credentials are neither an OSError nor a ValueError for botocore and google-auth.
    except Exception as error:
        raise _native.StorageError(f"{name}: {error}") from error


def remote_files(address: str, storage_options: dict[str, Any]) -> list[RemoteFile]:
    """The traces of an address, a pattern or a folder."""
    return Address.of(address, storage_options).files(TRACES)


def _ending_in(suffixes: Sequence[str]) -> re.Pattern[str]:
    return re.compile("(" + "|".join(map(re.escape, suffixes)) + ")$")


def _is_web(address: str) -> bool:
    return address.startswith(("http://", "https://"))


def _without_query(address: str) -> str:
    """A query may contain a signature, which must stay private."""
    return "::".join(part.partition("?")[0] if _is_web(part) else part for part in address.split("::"))
