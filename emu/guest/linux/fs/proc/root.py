"""/proc: information of the guest's kernel about its processes, as files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from emu.engine.memory.pages import PAGE
from emu.guest.linux.calls.kernel.sys import RELEASE
from emu.guest.linux.fs.dir import Directory, Listing
from emu.guest.linux.fs.inode import Generated, Inode, MagicLink
from emu.guest.linux.fs.namei import path_of
from emu.guest.linux.fs.nsfs import NAME_SPACES, NameSpace
from emu.guest.linux.fs.pidfs import ProcessDirectory
from emu.guest.linux.fs.proc import net, sysvipc
from emu.guest.linux.fs.proc import pid as proc_process
from emu.guest.linux.fs.proc.mem import MemoryFile
from emu.guest.linux.ipc import mqueue
from emu.guest.linux.process.process import INIT, Process, Thread
from emu.support.words import decimal

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel

_SECOND: Final = 1_000_000_000
_TICKS: Final = 100


class Proc:
    """The tree below /proc of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._known: dict[object, Inode] = {}
        self._ns = self._name_spaces()
        self._files: dict[str, Callable[[], bytes]] = {
            "cpuinfo": lambda: "".join(
                f"processor\t: {cpu.number}\nmodel name\t: Trapline\n\n" for cpu in kernel.schedule.cpus.all
            ).encode(),
            "filesystems": lambda: b"nodev\ttmpfs\nnodev\tproc\n",
            "loadavg": lambda: b"0.00 0.00 0.00 1/%d 1\n" % len(kernel.threads),
            "meminfo": self._memory,
            "mounts": lambda: proc_process.MOUNTS,
            "stat": self._stat,
            "swaps": lambda: b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
            "uptime": lambda: b"%.2f 0.00\n" % (kernel.clock.now() / _SECOND),
            "version": f"Linux version {RELEASE} (trapline) #1 SMP Trapline\n".encode,
        }
        self.root = Listing(self._names, self._find)

    def _names(self) -> list[str]:
        numbers = [str(pid) for pid, process in self._kernel.processes.items() if not process.reaped]
        return [str(INIT), *numbers, *self._files, "net", "self", "thread-self", "sys", "sysvipc"]

    def _find(self, name: str) -> Inode | None:
        if name in self._files:
            return self._once(name, lambda: Generated(self._files[name]))
        if name == "sys":
            return self._once(name, self._settings)
        if name == "net":
            return self._once(name, lambda: net.directory(self._kernel))
        if name == "sysvipc":
            return self._once(name, lambda: sysvipc.directory(self._kernel))
        if name == "self":
            return self._once(name, lambda: self._own(lambda thread: str(thread.process.pid), self._of_process))
        if name == "thread-self":
            return self._once(name, lambda: self._own(_path_of_task, self._of_thread))
        number = _number(name)
        process = self._kernel.tasks.find(number)
        if process is None:
            thread = self._kernel.threads.get(number)
            return None if thread is None else self._once(thread, lambda: self._directory(thread.process, thread))
        return self._once(process, lambda: self._directory(process, None))

    def _once(self, key: object, make: Callable[[], Inode]) -> Inode:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def _own(self, path: Callable[[Thread], str], find: Callable[[Thread], Inode | None]) -> Inode:
        """Return a link whose path and destination depend on the thread that looks."""
        return MagicLink(
            lambda: path(found) if (found := self._kernel.current) is not None else "",
            lambda: find(found) if (found := self._kernel.current) is not None else None,
        )

    def _of_process(self, thread: Thread) -> Inode | None:
        return self._find(str(thread.process.pid))

    def _of_thread(self, thread: Thread) -> Inode | None:
        return self._thread(thread.process, str(thread.tid))

    def _settings(self) -> Inode:
        settings = Directory(0o555)
        kernel = settings.make("kernel", 0o555)
        texts = {"hostname": "trapline", "osrelease": RELEASE, "ostype": "Linux", "pid_max": "4194304",
                 "ngroups_max": "65536", "overflowuid": "65534", "cap_last_cap": "40",
                 "sched_rt_period_us": "1000000", "sched_rt_runtime_us": "950000", "sched_rr_timeslice_ms": "100",
                 **sysvipc.SETTINGS}  # fmt: skip
        for name, text in texts.items():
            kernel.add(name, Generated(lambda text=text: f"{text}\n".encode()))  # type: ignore[misc]
        memory = settings.make("vm", 0o555)
        memory.add("overcommit_memory", Generated(lambda: b"0\n"))
        files = settings.make("fs", 0o555)
        files.add("pipe-max-size", Generated(lambda: b"1048576\n"))
        queues = files.make("mqueue", 0o555)
        for name, number in mqueue.SETTINGS.items():
            queues.add(name, Generated(lambda number=number: b"%d\n" % number))  # type: ignore[misc]
        settings.add("net", net.settings())
        return settings

    @staticmethod
    def _name_spaces() -> Inode:
        """Return /proc/PID/ns, which all processes share: each kind of name space exists once."""
        directory = Directory(0o511)
        for name in NAME_SPACES:
            inode = NameSpace(name)
            directory.add(name, MagicLink(lambda inode=inode: inode.text, lambda inode=inode: inode))  # type: ignore[misc]
        return directory

    # -- a process

    def _directory(self, process: Process, thread: Thread | None) -> Inode:
        kernel = self._kernel
        files = proc_process.files(kernel, process, thread)
        files["mounts"] = self._files["mounts"]
        links: dict[str, tuple[Callable[[], str], Callable[[], Inode | None]]] = {
            "exe": (lambda: process.path, lambda: process.executable),
            "cwd": (
                lambda: path_of(process.surroundings.root, process.surroundings.directory),
                lambda: process.surroundings.directory,
            ),
            "root": (lambda: "/", lambda: process.surroundings.root),
        }
        made: dict[str, Inode] = {name: Generated(content) for name, content in files.items()}
        made |= {name: MagicLink(*link) for name, link in links.items()}
        made["mem"] = MemoryFile(process)
        made["fd"] = Listing(lambda: [str(fd) for fd in process.files], lambda name: self._descriptor(process, name))
        made["fdinfo"] = Listing(
            lambda: [str(fd) for fd in process.files],
            lambda name: (
                Generated(lambda: proc_process.descriptor(process, fd)) if (fd := _number(name)) >= 0 else None
            ),
        )
        made["net"] = self._once("net", lambda: net.directory(kernel))
        made["ns"] = self._ns
        if thread is None:
            made["task"] = Listing(
                lambda: [str(one.tid) for one in process.threads],
                lambda name: self._thread(process, name),
            )
        directory = (
            ProcessDirectory(lambda: list(made), made.get, process)
            if thread is None
            else Listing(lambda: list(made), made.get)
        )
        directory.uid, directory.gid = process.credentials.user.effective, process.credentials.group.effective
        return directory

    def _thread(self, process: Process, name: str) -> Inode | None:
        thread = self._kernel.tasks.find_thread(_number(name))
        if thread is None or thread.process is not process:
            return None
        return self._once(("task", thread), lambda: self._directory(process, thread))

    def _descriptor(self, process: Process, name: str) -> Inode | None:
        fd = _number(name)
        if fd not in list(process.files):
            return None
        file = process.files.get(fd)
        return self._once((process, file), lambda: MagicLink(lambda: file.path, lambda: file.inode))

    # -- the machine

    def _memory(self) -> bytes:
        total = len(self._kernel.engine.memory.ram) >> 10
        free = total - self._kernel.frames.used * PAGE // 1024
        rows = {"MemTotal": total, "MemFree": free, "MemAvailable": free, "Buffers": 0, "Cached": 0, "SwapTotal": 0,
                "SwapFree": 0, "Shmem": 0, "SReclaimable": 0}  # fmt: skip
        return "".join(f"{name + ':':<15} {value:>8} kB\n" for name, value in rows.items()).encode()

    def _stat(self) -> bytes:
        now, cpus = self._kernel.clock.now(), self._kernel.schedule.cpus
        rate = self._kernel.clock.rate
        used = [cpu.ran * _SECOND // rate if cpus.several else now for cpu in cpus.all]
        rows = [("cpu ", sum(used), len(used) * now)]
        rows += [(f"cpu{number}", time, now) for number, time in enumerate(used)]
        first = "".join(
            f"{name} {time * _TICKS // _SECOND} 0 0 {max(0, total - time) * _TICKS // _SECOND} 0 0 0 0 0 0\n"
            for name, time, total in rows
        )
        rest = f"intr 0\nctxt 0\nbtime 1700000000\nprocesses {len(self._kernel.processes)}\nprocs_running 1\n"
        return (first + rest).encode()


def populate(root: Directory, kernel: Kernel) -> None:
    """Put /proc into a root; what was there is hidden."""
    if root.get("proc") is not None:
        del root.entries()["proc"]
    proc = Proc(kernel).root
    root.add("proc", proc)


def _path_of_task(thread: Thread) -> str:
    return f"{thread.process.pid}/task/{thread.tid}"


def _number(name: str) -> int:
    """Return the number that is an entry's name; -1: it is none (Linux fs/proc/util.c name_to_int)."""
    number = decimal(name)
    return -1 if number is None or str(number) != name else number
