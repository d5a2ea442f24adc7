"""/sys: what C libraries and tools ask there about the CPUs, of which there is one.

Source: Linux Documentation/ABI/testing/sysfs-devices-system-cpu.
"""

from __future__ import annotations

from typing import Final

from emu.guest.linux.directories import Directory
from emu.guest.linux.inodes import Generated

_FILES: Final = {
    "devices/system/cpu/possible": "0",
    "devices/system/cpu/present": "0",
    "devices/system/cpu/online": "0",
    "devices/system/cpu/offline": "",
    "devices/system/cpu/kernel_max": "0",
    "devices/system/cpu/cpu0/topology/core_id": "0",
    "devices/system/cpu/cpu0/topology/physical_package_id": "0",
    "devices/system/cpu/cpu0/topology/thread_siblings": "1",
    "devices/system/cpu/cpu0/topology/core_siblings": "1",
    "kernel/mm/transparent_hugepage/enabled": "always madvise [never]",
}


def populate(root: Directory) -> None:
    """Put /sys into a root; what was there is hidden."""
    if root.get("sys") is not None:
        del root.entries()["sys"]
    system = root.make("sys", 0o555)
    for path, text in _FILES.items():
        folder, name = path.rsplit("/", 1)
        content = f"{text}\n".encode()
        system.make(folder, 0o555).add(name, Generated(lambda content=content: content))  # type: ignore[misc]
