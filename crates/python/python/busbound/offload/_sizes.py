"""Sizes as people write them."""

from __future__ import annotations

import re

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


class OffloadError(RuntimeError):
    """Offload cannot do this; the message says why and what to do instead."""


def bytes_of(size: int | float | str) -> int:
    """The bytes of ``4e9``, ``"4GB"`` (10^9) or ``"4GiB"`` (2^30)."""
    if isinstance(size, (int, float)):
        count = float(size)
    else:
        match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([KMGT]i?)?B?\s*", size, re.IGNORECASE)
        if match is None:
            raise OffloadError(f"{size!r} is not a size: write 4GB, 512MiB or a number of bytes")
        unit = (match[2] or "").capitalize()
        count = float(match[1]) * _UNITS[unit]
    if not 0 < count < 1e15:
        raise OffloadError(f"{size!r} is not a size above zero")
    return int(count)


def text_of(size: float) -> str:
    """A size in the unit that fits: ``6.48 GB``."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} B"
