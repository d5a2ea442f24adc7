"""The files of /proc/PID: what a process is and has, as text.

Source: Linux fs/proc/array.c, base.c, task_mmu.c; Documentation/filesystems/proc.rst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.mm.address_space import Mark
from emu.guest.linux.process.cred import Ids
from emu.guest.linux.process.process import INIT, REAL_TIME, Life, Process, Thread
from emu.guest.linux.process.rlimit import INFINITE, NAMES
from emu.guest.linux.sched.cpus import list_of
from emu.isa.linux_signals import IGNORE, SignalInfo

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel
    from emu.guest.linux.mm.address_space import Area

_SECOND: Final = 1_000_000_000
_TICKS: Final = 100
_STATES: Final = {"R": "running", "S": "sleeping", "T": "stopped", "Z": "zombie"}
# The marks of an area by their flags in smaps.
_MARKS: Final = (
    ("lo", Mark.LOCKED),
    ("dc", Mark.NOT_IN_CHILD),
    ("lf", Mark.LOCKED_ON_FAULT),
    ("wf", Mark.WIPED_IN_CHILD),
    ("sl", Mark.SEALED),
)
MOUNTS: Final = b"root / tmpfs rw 0 0\nproc /proc proc rw 0 0\n"
_MOUNTINFO: Final = b"""\
1 0 0:1 / / rw - tmpfs root rw
2 1 0:2 / /proc rw - proc proc rw
"""


def files(kernel: Kernel, process: Process, thread: Thread | None) -> dict[str, Callable[[], bytes]]:
    """Return the files of a process or thread: what makes their content, by name."""
    return {
        "auxv": lambda: process.auxiliary,
        "cgroup": lambda: b"0::/\n",
        "cmdline": lambda: _strings(process, process.arguments),
        "comm": lambda: _bytes((thread.name if thread else "") or process.name) + b"\n",
        "environ": lambda: _strings(process, process.environment),
        "io": lambda: _io(process),
        "limits": lambda: _limits(process),
        "loginuid": lambda: b"4294967295",
        "maps": lambda: _maps(kernel, process),
        "mountinfo": lambda: _MOUNTINFO,
        "oom_score": lambda: b"0\n",
        "oom_score_adj": lambda: b"0\n",
        "personality": lambda: b"%08x\n" % _personality(process, thread),
        "sessionid": lambda: b"4294967295",
        "smaps": lambda: _smaps(kernel, process),
        "smaps_rollup": lambda: _rollup(_areas(kernel, process), process),
        "stat": lambda: _stat(kernel, process, thread),
        "statm": lambda: b"%d %d %d 0 0 %d 0\n" % (_pages(process), process.space.resident, *_shares(process)),
        "status": lambda: _status(process, thread, kernel.schedule.cpus.mask),
        "wchan": lambda: b"0",
    }


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _strings(process: Process, strings: tuple[bytes, ...]) -> bytes:
    return b"".join(text + b"\0" for text in strings) if process.alive else b""


def _table(rows: dict[str, object]) -> bytes:
    return _bytes("".join(f"{name}:\t{value}\n" for name, value in rows.items()))


# -- memory


def _pages(process: Process) -> int:
    return process.space.size // PAGE


def _shares(process: Process) -> tuple[int, int]:
    """Return the number of pages of files, and of data and stacks (statm)."""
    files = sum(len(process.space.touched(area)) for area in process.space.areas if area.backing is not None)
    data = sum(area.end - area.start for area in process.space.areas if Access.WRITE in area.access and not area.shared)
    return files, data // PAGE


def _heading(kernel: Kernel, area: Area) -> str:
    number = kernel.numbered(area.backing).number if isinstance(area.backing, Inode) else 0
    rights = "".join(
        letter if right in area.access else "-"
        for letter, right in (("r", Access.READ), ("w", Access.WRITE), ("x", Access.EXECUTE))
    )
    device = "00:01" if number else "00:00"
    shared = "s" if area.shared else "p"
    head = f"{area.start:08x}-{area.end:08x} {rights}{shared} {area.offset if number else 0:08x} {device}"
    return f"{head} {number} ".ljust(73) + area.name if area.name else f"{head} {number} "


def _areas(kernel: Kernel, process: Process) -> list[Area]:
    return [area for area in process.space.areas if area.name not in kernel.left_out_of_maps]


def _maps(kernel: Kernel, process: Process) -> bytes:
    return _bytes("".join(f"{_heading(kernel, area)}\n" for area in _areas(kernel, process)))


def _sizes(process: Process, areas: list[Area]) -> dict[str, int]:
    """Return the rows of smaps that say how much of areas is in memory, in KiB."""
    space = process.space
    touched = [(page, space.is_own(page)) for area in areas for page in space.touched(area)]
    resident, own = 4 * len(touched), 4 * sum(own for _, own in touched)
    files = {page for area in areas if area.backing is not None for page in space.touched(area)}
    # The pages that a fork left to both sides were written before it.
    shared_dirty = 4 * sum(not own and page not in files for page, own in touched)
    return {
        "Rss": resident,
        "Pss": own + (resident - own) // 2,
        "Shared_Clean": resident - own - shared_dirty,
        "Shared_Dirty": shared_dirty,
        "Private_Clean": 0,
        "Private_Dirty": own,
        "Referenced": resident,
        "Anonymous": 4 * sum(own for page, own in touched if own or page not in files),
        "Swap": 0,
        "Locked": 0,
    }


def _rows(sizes: dict[str, int]) -> str:
    return "".join(f"{name + ':':<15} {size:>8} kB\n" for name, size in sizes.items())


def _smaps(kernel: Kernel, process: Process) -> bytes:
    text = ""
    for area in _areas(kernel, process):
        sizes = {"Size": (area.end - area.start) >> 10, "KernelPageSize": 4, "MMUPageSize": 4}
        flags = "".join(
            f"{flag} "
            for flag, right in (("rd", Access.READ), ("wr", Access.WRITE), ("ex", Access.EXECUTE))
            if right in area.access
        )
        flags += "sh " if area.shared else ""
        flags += "".join(f"{flag} " for flag, mark in _MARKS if mark in area.marks)
        sizes |= _sizes(process, [area])
        if Mark.LOCKED in area.marks:
            sizes["Locked"] = sizes["Pss"]
        text += f"{_heading(kernel, area)}\n{_rows(sizes)}THPeligible:           0\nVmFlags: {flags}\n"
    return _bytes(text)


def _rollup(areas: list[Area], process: Process) -> bytes:
    if not areas:
        return b""
    head = f"{areas[0].start:08x}-{areas[-1].end:08x} ---p 00000000 00:00 0 ".ljust(73) + "[rollup]\n"
    return _bytes(head + _rows(_sizes(process, areas)))


# -- the process


def _personality(process: Process, thread: Thread | None) -> int:
    one = thread or (process.threads[0] if process.threads else None)
    return one.personality if one is not None else 0


def _state(process: Process, thread: Thread | None) -> str:
    if not process.alive:
        return Life.DEAD.value
    one = thread or (process.threads[0] if process.threads else None)
    return one.life.value if one is not None else Life.DEAD.value


def _stat(kernel: Kernel, process: Process, thread: Thread | None) -> bytes:
    """Return the fields of stat, by their numbers in proc_pid_stat(5)."""
    parent = _parent(process)
    rate = kernel.clock.rate
    ran, children = ((thread or process).ran, process.children_ran)
    fields: list[object] = [0] * 53
    fields[1:9] = (
        thread.tid if thread else process.pid, f"({process.name})", _state(process, thread), parent, process.group,
        process.session, 0, -1,
    )  # fmt: skip
    fields[10] = process.faults
    fields[14], fields[16] = ran * _TICKS // rate, children * _TICKS // rate
    one = thread or (process.threads[0] if process.threads else None)
    if one is not None:
        scheduling = one.scheduling
        real_time = scheduling.policy in REAL_TIME
        fields[18] = -1 - scheduling.priority if real_time else 20 + scheduling.nice
        fields[19], fields[40], fields[41] = scheduling.nice, scheduling.priority, int(scheduling.policy)
    fields[20] = len(process.threads)
    fields[22] = process.start_time * _TICKS // _SECOND
    fields[23], fields[24], fields[25] = process.space.size, process.space.resident, INFINITE
    fields[38] = process.exit_signal
    fields[39] = one.cpu if one is not None else 0
    fields[45:52] = (process.space.brk_start, process.space.brk_start, 0, 0, 0, 0, 0)
    fields[52] = process.status or 0
    return _bytes(" ".join(str(field) for field in fields[1:]) + "\n")


def _parent(process: Process) -> int:
    """Return the number of the parent; process 1 has none."""
    if process.is_init:
        return 0
    return process.parent.pid if process.parent is not None else INIT


def _mask(numbers: list[int]) -> str:
    return f"{sum(1 << number - 1 for number in set(numbers)):016x}"


def _numbers(queue: Iterable[SignalInfo]) -> list[int]:
    return [info.number for info in queue]


def _status(process: Process, thread: Thread | None, cpus: int) -> bytes:
    parent = _parent(process)
    one = thread or (process.threads[0] if process.threads else None)
    credentials, state = process.credentials, _state(process, thread)
    allowed = cpus & one.affinity if one is not None else cpus
    rows: dict[str, object] = {
        "Name": (one.name if one else "") or process.name,
        "Umask": f"{process.surroundings.umask:04o}",
        "State": f"{state} ({_STATES[state]})",
        "Tgid": process.pid,
        "Ngid": 0,
        "Pid": one.tid if one else process.pid,
        "PPid": parent,
        "TracerPid": 0,
        "Uid": "\t".join(str(number) for number in _ids(credentials.user)),
        "Gid": "\t".join(str(number) for number in _ids(credentials.group)),
        "FDSize": 64,
        "Groups": "".join(f"{group} " for group in credentials.groups),
    }
    if process.alive:
        process.count_pages()
        resident = 4 * process.space.resident
        rows |= {
            name: f"{size:>8} kB"
            for name, size in (
                ("VmPeak", 4 * _pages(process)),
                ("VmSize", 4 * _pages(process)),
                ("VmLck", process.space.marked(Mark.LOCKED) >> 10),
                ("VmPin", 0),
                ("VmHWM", 4 * process.most_pages),
                ("VmRSS", resident),
                ("VmData", 4 * _shares(process)[1]),
                ("VmSwap", 0),
            )
        }
    actions = list(enumerate(process.signals.actions))
    rows |= {
        "Threads": len(process.threads),
        "SigQ": f"{len(process.pending)}/{process.limits[11].soft}",
        "SigPnd": _mask(_numbers(one.pending) if one else []),
        "ShdPnd": _mask(_numbers(process.pending)),
        "SigBlk": f"{one.mask if one else 0:016x}",
        "SigIgn": _mask([number for number, action in actions if action.handler == IGNORE and number]),
        "SigCgt": _mask([number for number, action in actions if action.handler > IGNORE]),
        "CapInh": f"{credentials.inheritable:016x}",
        "CapPrm": f"{credentials.permitted:016x}",
        "CapEff": f"{credentials.effective:016x}",
        "CapBnd": f"{(1 << 41) - 1:016x}",
        "CapAmb": f"{0:016x}",
        "NoNewPrivs": int(process.credentials.no_new_privileges),
        "Seccomp": 0,
        "Cpus_allowed": f"{allowed:x}",
        "Cpus_allowed_list": list_of(allowed),
        "Mems_allowed_list": 0,
        "voluntary_ctxt_switches": 0,
        "nonvoluntary_ctxt_switches": 0,
    }
    return _table(rows)


def _ids(ids: Ids) -> tuple[int, ...]:
    return ids.real, ids.effective, ids.saved, ids.files


def _io(process: Process) -> bytes:
    rows = {"rchar": process.bytes_read, "wchar": process.bytes_written, "syscr": process.reads,
            "syscw": process.writes, "read_bytes": 0, "write_bytes": 0, "cancelled_write_bytes": 0}  # fmt: skip
    return _bytes("".join(f"{name}: {value}\n" for name, value in rows.items()))


def _limits(process: Process) -> bytes:
    text = f"{'Limit':<26}{'Soft Limit':<21}{'Hard Limit':<21}{'Units':<10}\n"
    for number, (name, unit) in enumerate(NAMES):
        soft, hard = ("unlimited" if value == INFINITE else str(value) for value in process.limits[number])
        text += f"{name:<26}{soft:<21}{hard:<21}{unit:<10}\n"
    return _bytes(text)


def descriptor(process: Process, number: int) -> bytes:
    """Return what /proc/PID/fdinfo says of a descriptor.  Raises `LinuxError` EBADF."""
    file = process.files.get(number)
    flags = file.flags | (0o2000000 if process.files.closes_on_exec(number) else 0)
    return _bytes(f"pos:\t{file.position}\nflags:\t0{flags:o}\nmnt_id:\t1\nino:\t{file.inode.number}\n")
