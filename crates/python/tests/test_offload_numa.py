"""Host memory on the GPU's NUMA node: no torch, the kernel itself, and a made folder of devices."""

import ctypes
import mmap
import platform
from types import SimpleNamespace

import pytest

from busbound.offload._numa import node_of, prefer

GPU = SimpleNamespace(pci_domain_id=0, pci_bus_id=0xC1, pci_device_id=0)


def system(folder, online, node):
    devices = folder / "bus/pci/devices/0000:c1:00.0"
    devices.mkdir(parents=True)
    (devices / "numa_node").write_text(f"{node}\n")
    nodes = folder / "devices/system/node"
    nodes.mkdir(parents=True)
    (nodes / "online").write_text(f"{online}\n")
    return folder


@pytest.mark.parametrize(
    ("online", "node", "expected"), [("0-1", 1, 1), ("0,2", 2, 2), ("0", 0, None), ("0-1", -1, None)]
)
def test_the_node_of_a_gpu_is_read_where_there_are_several(tmp_path, online, node, expected):
    assert node_of(GPU, system(tmp_path, online, node)) == expected


def test_gpus_of_unknown_places_have_no_node(tmp_path):
    there = system(tmp_path, "0-1", 1)
    assert node_of(SimpleNamespace(), there) is None
    assert node_of(SimpleNamespace(pci_domain_id=0, pci_bus_id=1, pci_device_id=0), there) is None
    assert node_of(SimpleNamespace(pci_domain_id=None, pci_bus_id=1, pci_device_id=0), there) is None
    assert node_of(GPU, tmp_path / "nowhere") is None


def policy_of(address):
    """The kernel's policy for the memory at an address, and its nodes."""
    number = {"x86_64": 239, "aarch64": 236}[platform.machine()]
    mode, nodes = ctypes.c_int(-1), (ctypes.c_ulong * 16)()
    of_address = 2
    call = ctypes.CDLL(None, use_errno=True).syscall
    said = call(
        ctypes.c_long(number),
        ctypes.byref(mode),
        nodes,
        ctypes.c_ulong(16 * 64),
        ctypes.c_void_p(address),
        ctypes.c_ulong(of_address),
    )
    return (mode.value, nodes[0]) if said == 0 else None


def test_pages_that_are_not_there_yet_come_from_the_preferred_node():
    size = 4 * mmap.PAGESIZE
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    before = policy_of(address)
    assert prefer(address, size, 0) == (before is not None)
    if before is not None:
        preferred = 1
        assert before[0] != preferred
        assert policy_of(address) == (preferred, 1)
    memory[:] = bytes(size)


def test_a_node_that_does_not_exist_is_refused_and_does_no_harm():
    size = mmap.PAGESIZE
    memory = mmap.mmap(-1, size)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert not prefer(address, size, 900)
    memory[:] = bytes(size)
