"""Where is each tensor in safetensors files, and how do its bytes get into memory that exists already?

The format: 8 bytes with the length of a JSON header, the header (name -> dtype, shape, data_offsets), the data.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import torch

from ._sizes import OffloadError

_DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "I16": "int16",
    "I8": "int8", "U8": "uint8", "BOOL": "bool", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
}  # fmt: skip
#: No header is longer; a larger number means that the file is something else.
_LONGEST_HEADER = 100_000_000
#: Bytes that one thread reads at a time: a page cache gives about 3 GB/s per thread.
_PART = 32 << 20


class Entry(NamedTuple):
    """One tensor of a file."""

    path: str
    begin: int
    nbytes: int
    dtype: Any
    shape: tuple[int, ...]

    def read_into(self, target: Any, threads: ThreadPoolExecutor) -> None:
        """Reads the values into a CPU tensor, without a second copy if it has the same type and no gaps."""
        if tuple(target.shape) != self.shape:
            raise OffloadError(f"{self.path}: a tensor has shape {self.shape}, the model expects {tuple(target.shape)}")
        if target.dtype == self.dtype and target.is_contiguous() and target.device.type == "cpu":
            self._read(target, threads)
            return
        values = torch.empty(self.shape, dtype=self.dtype)
        self._read(values, threads)
        target.copy_(values)

    def _read(self, target: Any, threads: ThreadPoolExecutor) -> None:
        # Not through NumPy, which torch does not need and which has no bfloat16.
        memory = memoryview((ctypes.c_char * self.nbytes).from_address(target.data_ptr())).cast("B")

        def part(offset: int) -> None:
            end = min(offset + _PART, self.nbytes)
            with open(self.path, "rb", buffering=0) as file:
                while offset < end:
                    count = os.preadv(file.fileno(), [memory[offset:end]], self.begin + offset)
                    if not count:
                        raise OffloadError(f"{self.path} ends before its data: it is incomplete")
                    offset += count

        list(threads.map(part, range(0, self.nbytes, _PART)))


def entries_of(files: Sequence[str]) -> dict[str, Entry]:
    """The tensors of files by their names."""
    found: dict[str, Entry] = {}
    for path in files:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            size = os.fstat(file.fileno()).st_size
            if not 2 <= length <= min(_LONGEST_HEADER, size - 8):
                raise OffloadError(f"{path} is not a safetensors file")
            try:
                header = json.loads(file.read(length))
            except ValueError as error:
                raise OffloadError(f"{path} is not a safetensors file: {error}") from error
        for name, about in header.items():
            if name != "__metadata__":
                found[name] = _entry(path, name, about, 8 + length, size)
    return found


def _entry(path: str, name: str, about: dict[str, Any], data: int, size: int) -> Entry:
    dtype = getattr(torch, _DTYPES.get(about["dtype"], ""), None)
    if dtype is None:
        raise OffloadError(f"{path}: {name} has the type {about['dtype']}, which torch does not have")
    begin, end = about["data_offsets"]
    shape = tuple(about["shape"])
    count = 1
    for each in shape:
        count *= each
    if not 0 <= begin <= end or data + end > size or end - begin != count * dtype.itemsize:
        raise OffloadError(f"{path}: {name} is outside of the file: it is damaged or incomplete")
    return Entry(path, data + begin, end - begin, dtype, shape)
