"""System calls that make processes and threads, run programs, end them, and wait.

Source: Linux kernel/fork.c, fs/exec.c, kernel/exit.c.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from typing import Final

from emu.guest.linux.calls.kernel.pid import open_process, process_file
from emu.guest.linux.calls.kernel.rlimit import limit_cpu, usage_of
from emu.guest.linux.calls.table import (
    AT_FDCWD,
    Address,
    Blocking,
    Caller,
    Int,
    Path,
    Size,
    Unsigned,
    call,
)
from emu.guest.linux.errno import (
    E2BIG,
    EAGAIN,
    ECHILD,
    EINVAL,
    EPERM,
    LinuxError,
)
from emu.guest.linux.fs.namei import path_of
from emu.guest.linux.fs.open_file import O_NONBLOCK
from emu.guest.linux.process.exec import execute
from emu.guest.linux.process.process import Process, Thread, Wait, inherit
from emu.guest.linux.sched.thread_segments import SIZE as SEGMENT_SIZE
from emu.guest.linux.sched.thread_segments import Segments
from emu.isa.linux_signals import (
    CLD_CONTINUED,
    CLD_DUMPED,
    CLD_EXITED,
    CLD_KILLED,
    CLD_STOPPED,
    LAST,
    Signal,
    SignalInfo,
)

_CLONE_VM, _CLONE_FS, _CLONE_FILES, _CLONE_SIGHAND = 0x100, 0x200, 0x400, 0x800
_CLONE_VFORK, _CLONE_PARENT, _CLONE_THREAD, _CLONE_SETTLS = 0x4000, 0x8000, 0x10000, 0x80000
_CLONE_PARENT_SETTID, _CLONE_CHILD_CLEARTID, _CLONE_CHILD_SETTID = 0x100000, 0x200000, 0x1000000
_CLONE_CLEAR_SIGHAND: Final = 1 << 32
# Flags that ask for a name space, which only root outside has.
_CLONE_NEW: Final = 0x7E020080
_CLONE_PIDFD: Final = 0x1000
# Flags that clone3 knows: those of clone, CLONE_CLEAR_SIGHAND, CLONE_INTO_CGROUP, CLONE_NEWTIME; not CLONE_DETACHED.
_CLONE3_FLAGS: Final = 0x3_FFBF_FF80
_PAGE: Final = 4096
# Memory for each thread that the system may have: eight stacks of the kernel's (kernel/fork.c set_max_threads).
_THREAD_COST: Final = 8 * (16 << 10)
_WNOHANG, _WUNTRACED, _WEXITED, _WCONTINUED, _WNOWAIT = 1, 2, 4, 8, 0x01000000
_P_ALL, _P_PID, _P_PGID, _P_PIDFD = 0, 1, 2, 3
# Options of waitid: the above, __WNOTHREAD, __WALL and __WCLONE.
_WAITID_OPTIONS: Final = _WNOHANG | _WUNTRACED | _WEXITED | _WCONTINUED | _WNOWAIT | 0xE000_0000
_SECOND: Final = 1_000_000_000
_AT_EMPTY_PATH: Final = 0x1000


def _clone(
    c: Caller,
    flags: int,
    stack: int,
    parent_tid: int,
    child_tid: int,
    tls: int,
    exit_signal: int,
    *,
    pidfd_at: int = 0,
) -> Blocking:
    kernel, process = c.kernel, c.process
    if flags & _CLONE_NEW:
        raise LinuxError(EPERM)
    if (flags & _CLONE_THREAD and not flags & _CLONE_SIGHAND) or (flags & _CLONE_SIGHAND and not flags & _CLONE_VM):
        raise LinuxError(EINVAL)
    if flags & _CLONE_PIDFD and flags & _CLONE_THREAD:
        raise LinuxError(EINVAL)
    if len(kernel.threads) >= len(kernel.engine.memory.ram) // _THREAD_COST:
        raise LinuxError(EAGAIN)
    scheduling = c.thread.scheduling
    if scheduling.reservation is not None and not scheduling.reset_on_fork:
        raise LinuxError(EAGAIN)
    segments = Segments(c.thread.segments)
    thread_pointer = _thread_pointer(c, segments, tls) if flags & _CLONE_SETTLS else None
    tid = kernel.tasks.new_number()
    if flags & _CLONE_THREAD:
        owner = process
    else:
        owner = _copy(c, process, tid, flags)
        owner.exit_signal = exit_signal
    thread = Thread(tid, owner, mask=c.thread.mask, cpu=c.thread.cpu, affinity=c.thread.affinity, segments=segments)
    thread.name = c.thread.name
    thread.io_priority, thread.personality = c.thread.io_priority, c.thread.personality
    if flags & _CLONE_THREAD:
        inherit(c.thread, thread, files=bool(flags & _CLONE_FILES), surroundings=bool(flags & _CLONE_FS))
    thread.scheduling = c.thread.scheduling.copy()
    if not flags & _CLONE_VM:
        thread.stack.address, thread.stack.flags, thread.stack.size = (
            c.thread.stack.address,
            c.thread.stack.flags,
            c.thread.stack.size,
        )
    thread.context = _child_registers(c, stack, thread_pointer)
    number = struct.pack("<i", tid)
    if flags & _CLONE_PIDFD:
        c.write(pidfd_at, struct.pack("<i", open_process(c, owner, 0)))
    if flags & _CLONE_PARENT_SETTID:
        c.write(parent_tid, number)
    if flags & _CLONE_CHILD_SETTID:
        if flags & _CLONE_VM:
            c.write(child_tid, number)
        else:
            owner.space.poke(child_tid, number)
    if flags & _CLONE_CHILD_CLEARTID:
        thread.clear_tid = child_tid
    for observer in kernel.observers:
        observer.born(c.thread, thread)
    kernel.add_thread(thread)
    if owner is not process:
        for observer in kernel.observers:
            observer.forked(process, owner)
    if flags & _CLONE_VFORK:
        yield Wait(lambda: thread.vfork_done, uninterruptible=True, key=thread)
    return tid


def _thread_pointer(c: Caller, segments: Segments, tls: int) -> int | None:
    """Return the thread pointer of a child; None: it has its parent's."""
    abi = c.kernel.abi
    if not abi.segments:
        return tls
    number = segments.put(c.read(tls, SEGMENT_SIZE), choose=False)
    selector = next(selector for selector, base in abi.segments.items() if base == abi.tls)
    used = c.kernel.engine.read_register(selector) >> 3 == number
    return segments.base(number) or 0 if used else None


def _copy(c: Caller, process: Process, pid: int, flags: int) -> Process:
    """Return a new process that has, or shares, what its parent has."""
    space = process.space
    if flags & _CLONE_VM:
        space.users += 1
    else:
        space = c.kernel.on_cpu.fork(space)
    signals = process.signals if flags & _CLONE_SIGHAND else process.signals.copy()
    if flags & _CLONE_CLEAR_SIGHAND:
        for action in signals.actions:
            action.handler = 0 if action.handler > 1 else action.handler
    parent = process.parent if flags & _CLONE_PARENT else process
    child = Process(
        pid,
        parent,
        space,
        process.files.share() if flags & _CLONE_FILES else process.files.copy(),
        process.surroundings if flags & _CLONE_FS else process.surroundings.copy(),
        signals,
        group=process.group,
        session=process.session,
        name=process.name,
        executable=process.executable,
        path=process.path,
        arguments=process.arguments,
        environment=process.environment,
        auxiliary=process.auxiliary,
        start_time=c.now(),
        credentials=process.credentials.copy(),
        limits=process.limits.copy(),
    )
    if child.executable is not None:
        child.executable.executions += 1
    limit_cpu(c, child)
    child.frames = dict(process.frames)
    if parent is not None:
        parent.children.append(child)
    c.kernel.processes[pid] = child
    return child


def _child_registers(c: Caller, stack: int, tls: int | None) -> object:
    """Return the registers a child begins with: its parent's, and 0 as the result."""
    kernel = c.kernel
    engine = kernel.engine
    parent = engine.cpu.new_context()
    engine.write_register(kernel.abi.call_result, 0)
    if stack:
        engine.write_register(kernel.isa.registers.sp, stack)
    if tls is not None:
        engine.write_register(kernel.abi.tls, tls)
    child = engine.cpu.new_context()
    engine.cpu.restore(parent)
    return child


@call("clone")
def clone(c: Caller, flags: Size, stack: Address, parent_tid: Address, fourth: Address, fifth: Address) -> Blocking:
    """Make a process or a thread."""
    child_tid, tls = (fifth, fourth) if c.kernel.abi.clone_tls_first else (fourth, fifth)
    if flags & _CLONE_PIDFD and flags & _CLONE_PARENT_SETTID:
        raise LinuxError(EINVAL)
    rest = flags & ~0xFF & 0xFFFF_FFFF
    return (yield from _clone(c, rest, stack, parent_tid, child_tid, tls, flags & 0xFF, pidfd_at=parent_tid))


@call("clone3")
def clone3(c: Caller, arguments: Address, size: Size) -> Blocking:
    """Make a process or a thread."""
    if size < 64:
        raise LinuxError(EINVAL)
    if size > _PAGE:
        raise LinuxError(E2BIG)
    flags, pidfd_at, child_tid, parent_tid, signal, stack, stack_size, tls = struct.unpack("<8Q", c.read(arguments, 64))
    if flags & ~_CLONE3_FLAGS or signal > LAST or bool(stack) != bool(stack_size):
        raise LinuxError(EINVAL)
    if flags & (_CLONE_THREAD | _CLONE_PARENT) and signal:
        raise LinuxError(EINVAL)
    top = stack + stack_size if stack else 0
    return (yield from _clone(c, flags, top, parent_tid, child_tid, tls, signal & 0xFF, pidfd_at=pidfd_at))


@call("fork")
def fork(c: Caller) -> Blocking:
    """Make a process."""
    return (yield from _clone(c, 0, 0, 0, 0, 0, Signal.SIGCHLD))


@call("vfork")
def vfork(c: Caller) -> Blocking:
    """Make a process that borrows this one's memory until it runs something else."""
    return (yield from _clone(c, _CLONE_VM | _CLONE_VFORK, 0, 0, 0, 0, Signal.SIGCHLD))


@call("execve")
def execve(c: Caller, path: Path, arguments: Address, environment: Address) -> int | None:
    """Run another program."""
    execute(c.kernel, c.thread, path, c.strings(arguments) or (b"",), c.strings(environment))
    return None


@call("execveat")
def execveat(
    c: Caller, directory: Int, path: Path, arguments: Address, environment: Address, flags: Unsigned
) -> int | None:
    """Run another program."""
    if not path and flags & _AT_EMPTY_PATH:
        program = c.file(directory).path
    elif path.startswith("/") or directory == AT_FDCWD:
        program = path
    else:
        program = path_of(c.process.surroundings.root, c.start(directory, path)).rstrip("/") + "/" + path
    execute(c.kernel, c.thread, program, c.strings(arguments) or (b"",), c.strings(environment))
    return None


@call("exit")
def exit_(c: Caller, status: Int) -> None:
    """End the thread."""
    c.kernel.endings.exit_thread(c.thread, (status & 0xFF) << 8)


@call("exit_group")
def exit_group(c: Caller, status: Int) -> None:
    """End the process."""
    c.kernel.endings.exit_process(c.process, (status & 0xFF) << 8)


def _candidates(c: Caller, kind: int, number: int) -> list[Process]:
    children = [child for child in c.process.children if not child.reaped]
    if kind == _P_PID:
        return [child for child in children if child.pid == number]
    if kind == _P_PGID:
        return [child for child in children if child.group == (number or c.process.group)]
    return children


def _changed(child: Process, options: int) -> bool:
    return bool(
        (child.status is not None and options & _WEXITED)
        or (child.stopped_by and not child.reported_stop and options & _WUNTRACED)
        or (child.continued and options & _WCONTINUED)
    )


def _wait(c: Caller, kind: int, number: int, options: int) -> Generator[Wait, bool, Process | None]:
    """Wait for a child to change; None with WNOHANG if none has."""

    def look() -> Process | None:
        return next((child for child in _candidates(c, kind, number) if _changed(child, options)), None)

    while True:
        if not _candidates(c, kind, number):
            raise LinuxError(ECHILD)
        found = look()
        if found is not None:
            return found
        if options & _WNOHANG:
            return None
        # A child may change its group, and the waiting parent is not told.
        key = None if kind == _P_PGID else c.process
        yield Wait(lambda: look() is not None or not _candidates(c, kind, number), key=key)


def _take(c: Caller, child: Process, options: int) -> int:
    """Return the wait status of a change, and note that it was told."""
    keep = options & _WNOWAIT
    if child.status is not None:
        if not keep:
            c.kernel.endings.reap(child)
        return child.status
    if child.stopped_by and not child.reported_stop:
        child.reported_stop = not keep
        return child.stopped_by << 8 | 0x7F
    child.continued = bool(keep)
    return 0xFFFF


@call("wait4")
def wait4(c: Caller, pid: Int, status: Address, options: Unsigned, usage: Address) -> Blocking:
    """Wait for a child."""
    if pid < -1 or pid == 0:
        kind, number = _P_PGID, -pid if pid else 0
    else:
        kind, number = (_P_ALL, 0) if pid == -1 else (_P_PID, pid)
    child = yield from _wait(c, kind, number, options | _WEXITED)
    if child is None:
        return 0
    told = _take(c, child, options)
    if status:
        c.write(status, struct.pack("<i", told))
    if usage:
        c.write(usage, usage_of(c, child))
    return int(child.pid)


@call("waitid")
def waitid(c: Caller, kind: Int, number: Int, info: Address, options: Unsigned, usage: Address) -> Blocking:
    """Wait for a child."""
    if not options & (_WEXITED | _WUNTRACED | _WCONTINUED) or options & ~_WAITID_OPTIONS:
        raise LinuxError(EINVAL)
    if kind not in {_P_ALL, _P_PID, _P_PGID, _P_PIDFD}:
        raise LinuxError(EINVAL)
    if kind == _P_PIDFD:
        file = process_file(c, number)
        kind, number = _P_PID, file.process.pid
        if file.flags & O_NONBLOCK and not options & _WNOHANG:
            child = yield from _wait(c, kind, number, options | _WNOHANG)
            if child is None:
                raise LinuxError(EAGAIN)
    child = yield from _wait(c, kind, number, options)
    if child is None:
        if info:
            c.write(info, bytes(128))
        return 0
    told = _take(c, child, options)
    low = told & 0x7F
    if told == 0xFFFF:
        code, status = CLD_CONTINUED, int(Signal.SIGCONT)
    elif low == 0x7F:
        code, status = CLD_STOPPED, told >> 8
    elif low:
        code, status = CLD_DUMPED if told & 0x80 else CLD_KILLED, low
    else:
        code, status = CLD_EXITED, told >> 8
    if info:
        c.write(info, SignalInfo(Signal.SIGCHLD, code, pid=child.pid, status=status).pack(c.word))
    if usage:
        c.write(usage, usage_of(c, child))
    return 0
