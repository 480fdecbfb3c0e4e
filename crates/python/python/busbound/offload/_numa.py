"""Host memory on the NUMA node of the GPU: copies from another node also cross the link between the processors.

Only asked for on machines with several nodes. Where anything is unknown or refused, memory is where the system puts it.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from pathlib import Path
from typing import Any

#: The number of the system call `mbind`.
_MBIND = {"x86_64": 237, "aarch64": 235}
#: Pages come from this node as long as it has some, then from others.
_PREFERRED = 1
_BITS = 8 * ctypes.sizeof(ctypes.c_ulong)


def node_of(properties: Any, system: Path = Path("/sys")) -> int | None:
    """The node that a GPU is attached to, by torch's properties of the device; ``None`` if there is only one, or it is unknown."""
    try:
        if (system / "devices/system/node/online").read_text().strip().isdigit():
            return None
        domain, bus, slot = (
            getattr(properties, f"pci_{part}_id") for part in ("domain", "bus", "device")
        )
        address = f"{domain:04x}:{bus:02x}:{slot:02x}.0"
        node = int((system / "bus/pci/devices" / address / "numa_node").read_text())
    except (AttributeError, OSError, TypeError, ValueError):
        return None
    # Virtual machines say -1.
    return node if node >= 0 else None


def prefer(address: int, size: int, node: int) -> bool:
    """Lets pages that are not there yet come from a node, if it has any left."""
    number = _MBIND.get(platform.machine())
    if number is None or not sys.platform.startswith("linux"):
        return False
    words = (ctypes.c_ulong * (node // _BITS + 1))()
    words[node // _BITS] = 1 << (node % _BITS)
    # The kernel does not look at the last bit.
    bits = ctypes.c_ulong(len(words) * _BITS + 1)
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    done = call(
        ctypes.c_long(number),
        ctypes.c_void_p(address),
        ctypes.c_ulong(size),
        ctypes.c_int(_PREFERRED),
        words,
        bits,
        ctypes.c_uint(0),
    )
    return bool(done == 0)
