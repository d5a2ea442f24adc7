"""/sys: what C libraries and tools ask there about the CPUs.

Source: Linux Documentation/ABI/testing/sysfs-devices-system-cpu.
"""

from __future__ import annotations

from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.inode import Generated
from emu.guest.linux.sched.cpus import list_of


def _files(cpus: int) -> dict[str, str]:
    """Return the content of the files, by name, for a number of CPUs."""
    every = (1 << cpus) - 1
    files = {
        "devices/system/cpu/possible": list_of(every),
        "devices/system/cpu/present": list_of(every),
        "devices/system/cpu/online": list_of(every),
        "devices/system/cpu/offline": "",
        "devices/system/cpu/kernel_max": f"{cpus - 1}",
        "kernel/mm/transparent_hugepage/enabled": "always madvise [never]",
    }
    for number in range(cpus):
        topology = f"devices/system/cpu/cpu{number}/topology"
        files[f"{topology}/core_id"] = f"{number}"
        files[f"{topology}/physical_package_id"] = "0"
        files[f"{topology}/thread_siblings"] = f"{1 << number:x}"
        files[f"{topology}/core_siblings"] = f"{every:x}"
    return files


def populate(root: Directory, cpus: int) -> None:
    """Put /sys of a machine with this number of CPUs into a root; what was there is hidden."""
    if root.get("sys") is not None:
        del root.entries()["sys"]
    system = root.make("sys", 0o555)
    for path, text in _files(cpus).items():
        folder, name = path.rsplit("/", 1)
        content = f"{text}\n".encode()
        system.make(folder, 0o555).add(name, Generated(lambda content=content: content))  # type: ignore[misc]
