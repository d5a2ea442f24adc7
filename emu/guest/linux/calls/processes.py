"""System calls about processes and threads.

Source: Linux kernel/fork.c, kernel/exit.c, fs/exec.c, kernel/sys.c, kernel/futex.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from typing import Final

from emu.guest.linux.abi.errno import (
    EACCES,
    EAGAIN,
    ECHILD,
    EINVAL,
    ENOSYS,
    EPERM,
    ESRCH,
    ETIMEDOUT,
    LinuxError,
)
from emu.guest.linux.abi.signals import (
    CLD_CONTINUED,
    CLD_DUMPED,
    CLD_EXITED,
    CLD_KILLED,
    CLD_STOPPED,
    Signal,
    SignalInfo,
)
from emu.guest.linux.calls.table import (
    AT_FDCWD,
    Address,
    Blocking,
    Caller,
    Int,
    Long,
    Path,
    Size,
    Unsigned,
    answer,
    call,
)
from emu.guest.linux.paths import path_of
from emu.guest.linux.process import Process, Thread, Wait, Waiter

_CLONE_VM, _CLONE_FS, _CLONE_FILES, _CLONE_SIGHAND = 0x100, 0x200, 0x400, 0x800
_CLONE_VFORK, _CLONE_PARENT, _CLONE_THREAD, _CLONE_SETTLS = 0x4000, 0x8000, 0x10000, 0x80000
_CLONE_PARENT_SETTID, _CLONE_CHILD_CLEARTID, _CLONE_CHILD_SETTID = 0x100000, 0x200000, 0x1000000
_CLONE_CLEAR_SIGHAND: Final = 1 << 32
_CLONE_NEW: Final = 0x7E020080
"""Flags that ask for a name space, which only root outside has."""
_CLONE_PIDFD: Final = 0x1000
_WNOHANG, _WUNTRACED, _WEXITED, _WCONTINUED, _WNOWAIT = 1, 2, 4, 8, 0x01000000
_P_ALL, _P_PID, _P_PGID = 0, 1, 2
_FUTEX_PRIVATE, _FUTEX_CLOCK_REALTIME = 128, 256
_SECOND: Final = 1_000_000_000
_ARCH_SET_GS, _ARCH_SET_FS, _ARCH_GET_FS, _ARCH_GET_GS = 0x1001, 0x1002, 0x1003, 0x1004
_PR_SET_NAME, _PR_GET_NAME = 15, 16
_LAST_SIGNAL: Final = 64
_AT_EMPTY_PATH: Final = 0x1000


# Making them


def _clone(c: Caller, flags: int, stack: int, parent_tid: int, child_tid: int, tls: int, exit_signal: int) -> Blocking:
    kernel, process = c.kernel, c.process
    if flags & _CLONE_NEW:
        raise LinuxError(EPERM)
    if (flags & _CLONE_THREAD and not flags & _CLONE_SIGHAND) or (flags & _CLONE_SIGHAND and not flags & _CLONE_VM):
        raise LinuxError(EINVAL)
    if flags & _CLONE_PIDFD:
        raise LinuxError(EINVAL)
    tid = kernel.new_pid()
    if flags & _CLONE_THREAD:
        owner = process
    else:
        owner = _copy(c, process, tid, flags)
        owner.exit_signal = exit_signal
    thread = Thread(tid, owner, mask=c.thread.mask)
    thread.name = c.thread.name
    if not flags & _CLONE_VM:
        thread.stack.address, thread.stack.flags, thread.stack.size = (
            c.thread.stack.address,
            c.thread.stack.flags,
            c.thread.stack.size,
        )
    thread.context = _child_registers(c, stack, tls if flags & _CLONE_SETTLS else None)
    number = struct.pack("<i", tid)
    if flags & _CLONE_PARENT_SETTID:
        c.write(parent_tid, number)
    if flags & _CLONE_CHILD_SETTID:
        if flags & _CLONE_VM:
            c.write(child_tid, number)
        else:
            owner.space.poke(child_tid, number)
    if flags & _CLONE_CHILD_CLEARTID:
        thread.clear_tid = child_tid
    kernel.add_thread(thread)
    if owner is not process:
        for observer in kernel.observers:
            observer.forked(process, owner)
    if flags & _CLONE_VFORK:
        yield Wait(lambda: thread.vfork_done, uninterruptible=True)
    return tid


def _copy(c: Caller, process: Process, pid: int, flags: int) -> Process:
    """Return a new process that has, or shares, what its parent has."""
    space = process.space
    if flags & _CLONE_VM:
        space.users += 1
    else:
        space = space.fork()
        c.kernel.restorers[space] = c.kernel.restorers.get(process.space, 0)
    signals = process.signals if flags & _CLONE_SIGHAND else process.signals.copy()
    if flags & _CLONE_CLEAR_SIGHAND:
        for action in signals.actions:
            action.handler = 0 if action.handler > 1 else action.handler
    parent = process.parent if flags & _CLONE_PARENT else process
    child = Process(
        pid,
        parent,
        space,
        process.files if flags & _CLONE_FILES else process.files.copy(),
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
    )
    child.frames = dict(process.frames)
    if parent is not None:
        parent.children.append(child)
    c.kernel.processes[pid] = child
    return child


def _child_registers(c: Caller, stack: int, tls: int | None) -> object:
    """Return the registers a child begins with: its parent's, and 0 as the result."""
    kernel = c.kernel
    engine = kernel.engine
    parent = engine.new_context()
    engine.write_register(kernel.abi.call_result, 0)
    if stack:
        engine.write_register(kernel.isa.registers.sp, stack)
    if tls is not None:
        engine.write_register(kernel.abi.tls, tls)
    child = engine.new_context()
    engine.restore(parent)
    return child


@call("clone")
def clone(c: Caller, flags: Size, stack: Address, parent_tid: Address, fourth: Address, fifth: Address) -> Blocking:
    """Make a process or a thread."""
    child_tid, tls = (fifth, fourth) if c.kernel.abi.clone_tls_first else (fourth, fifth)
    return (yield from _clone(c, flags & ~0xFF & 0xFFFF_FFFF, stack, parent_tid, child_tid, tls, flags & 0xFF))


@call("clone3")
def clone3(c: Caller, arguments: Address, size: Size) -> Blocking:
    """Make a process or a thread."""
    if size < 64:
        raise LinuxError(EINVAL)
    flags, _pidfd, child_tid, parent_tid, signal, stack, stack_size, tls = struct.unpack("<8Q", c.read(arguments, 64))
    return (yield from _clone(c, flags, stack + stack_size if stack else 0, parent_tid, child_tid, tls, signal & 0xFF))


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
    c.kernel.execute(c.thread, path, c.strings(arguments) or (b"",), c.strings(environment))
    return None


@call("execveat")
def execveat(
    c: Caller, directory: Int, path: Path, arguments: Address, environment: Address, flags: Unsigned
) -> int | None:
    """Run another program."""
    if not path and flags & _AT_EMPTY_PATH:
        place = c.file(directory).path
    elif path.startswith("/") or directory == AT_FDCWD:
        place = path
    else:
        place = path_of(c.process.surroundings.root, c.start(directory, path)).rstrip("/") + "/" + path
    c.kernel.execute(c.thread, place, c.strings(arguments) or (b"",), c.strings(environment))
    return None


# Ending them


@call("exit")
def exit_(c: Caller, status: Int) -> None:
    """End the thread."""
    c.kernel.exit_thread(c.thread, (status & 0xFF) << 8)


@call("exit_group")
def exit_group(c: Caller, status: Int) -> None:
    """End the process."""
    c.kernel.exit_process(c.process, (status & 0xFF) << 8)


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
        yield Wait(lambda: look() is not None or not _candidates(c, kind, number))


def _take(c: Caller, child: Process, options: int) -> int:
    """Return the wait status of a change, and note that it was told."""
    keep = options & _WNOWAIT
    if child.status is not None:
        if not keep:
            c.kernel.reap(child)
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
        c.write(usage, _usage(c, child.ran))
    return int(child.pid)


@call("waitid")
def waitid(c: Caller, kind: Int, number: Int, info: Address, options: Unsigned, usage: Address) -> Blocking:
    """Wait for a child."""
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
        c.write(info, SignalInfo(Signal.SIGCHLD, code, pid=child.pid, status=status).pack())
    if usage:
        c.write(usage, _usage(c, child.ran))
    return 0


def _usage(c: Caller, ran: int) -> bytes:
    """Return struct rusage for so many instructions."""
    seconds, nanoseconds = divmod(ran * _SECOND // c.kernel.clock.rate, _SECOND)
    return struct.pack("<qq", seconds, nanoseconds // 1000) + bytes(128)


@call("getrusage")
def getrusage(c: Caller, who: Int, usage: Address) -> int:
    """Tell what was used: time, by the instruction."""
    c.write(usage, _usage(c, c.thread.ran if who == 1 else c.process.ran if who == 0 else 0))
    return 0


# Who they are


@call("getpid")
def getpid(c: Caller) -> int:
    """Return the process's number."""
    return c.process.pid


@call("gettid")
def gettid(c: Caller) -> int:
    """Return the thread's number."""
    return c.thread.tid


@call("getppid")
def getppid(c: Caller) -> int:
    """Return the parent's number."""
    parent = c.process.parent
    return parent.pid if parent is not None and parent.alive else 1


answer("getuid", "geteuid", "getgid", "getegid", "getgroups")
answer("setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups", "setfsuid", "setfsgid")


@call("getresuid", "getresgid")
def getresuid(c: Caller, real: Address, effective: Address, saved: Address) -> int:
    """Say root three times."""
    for address in (real, effective, saved):
        c.write(address, bytes(4))
    return 0


@call("capget")
def capget(c: Caller, header: Address, data: Address) -> int:
    """Say that root may do everything."""
    del header
    if data:
        c.write(data, b"\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0" * 2)
    return 0


answer("capset")


def _find(c: Caller, pid: int) -> Process:
    process = c.kernel.processes.get(pid) if pid else c.process
    if process is None:
        raise LinuxError(ESRCH)
    return process


@call("getpgid")
def getpgid(c: Caller, pid: Int) -> int:
    """Return a process group."""
    return _find(c, pid).group


@call("getpgrp")
def getpgrp(c: Caller) -> int:
    """Return the process group."""
    return c.process.group


@call("getsid")
def getsid(c: Caller, pid: Int) -> int:
    """Return a session."""
    return _find(c, pid).session


@call("setpgid")
def setpgid(c: Caller, pid: Int, group: Int) -> int:
    """Put a process into a group."""
    process = _find(c, pid)
    if process is not c.process and process.parent is not c.process:
        raise LinuxError(ESRCH)
    if process is not c.process and process.executed:
        raise LinuxError(EACCES)
    if group < 0:
        raise LinuxError(EINVAL)
    if process.session == process.pid:
        raise LinuxError(EPERM)
    process.group = group or process.pid
    return 0


@call("setsid")
def setsid(c: Caller) -> int:
    """Begin a session."""
    if c.process.group == c.process.pid:
        raise LinuxError(EPERM)
    c.process.session = c.process.group = c.process.pid
    return c.process.pid


@call("set_tid_address")
def set_tid_address(c: Caller, address: Address) -> int:
    """Say where the thread's number is to be cleared."""
    c.thread.clear_tid = address
    return c.thread.tid


@call("set_robust_list")
def set_robust_list(c: Caller, head: Address, size: Size) -> int:
    """Note where the thread keeps its locks."""
    del size
    c.thread.robust_list = head
    return 0


@call("get_robust_list")
def get_robust_list(c: Caller, pid: Int, head: Address, size: Address) -> int:
    """Tell where a thread keeps its locks."""
    thread = c.kernel.threads.get(pid) if pid else c.thread
    if thread is None:
        raise LinuxError(ESRCH)
    c.write(head, struct.pack("<Q", thread.robust_list))
    c.write(size, struct.pack("<Q", 24))
    return 0


@call("rseq")
def rseq(c: Caller) -> int:
    """Say that there are no restartable sequences, as kernels built without them do."""
    del c
    raise LinuxError(ENOSYS)


@call("arch_prctl")
def arch_prctl(c: Caller, code: Int, address: Address) -> int:
    """Set the base of a segment."""
    registers = {_ARCH_SET_FS: "fs_base", _ARCH_SET_GS: "gs_base", _ARCH_GET_FS: "fs_base", _ARCH_GET_GS: "gs_base"}
    if code not in registers:
        raise LinuxError(EINVAL)
    engine = c.kernel.engine
    if code in {_ARCH_SET_FS, _ARCH_SET_GS}:
        engine.write_register(registers[code], address)
    else:
        c.write(address, struct.pack("<Q", engine.read_register(registers[code])))
    return 0


@call("prctl")
def prctl(c: Caller, option: Int, argument: Address) -> int:
    """Set or tell the thread's name; what else there is has no effect here."""
    if option == _PR_SET_NAME:
        name = c.string(argument)[:15].decode("utf-8", "surrogateescape")
        c.thread.name = name
        if c.thread.is_leader:
            c.process.name = name
    elif option == _PR_GET_NAME:
        c.write(argument, (c.thread.name or c.process.name).encode("utf-8", "surrogateescape").ljust(16, b"\0"))
    elif option not in {1, 2, 3, 4, 8, 36, 38, 39}:
        raise LinuxError(EINVAL)
    return 0


# Futexes


def _deadline(c: Caller, timeout: int, *, absolute: bool, realtime: bool) -> int | None:
    if not timeout:
        return None
    seconds, nanoseconds = struct.unpack("<qq", c.read(timeout, 16))
    if seconds < 0 or not 0 <= nanoseconds < _SECOND:
        raise LinuxError(EINVAL)
    time = seconds * _SECOND + nanoseconds
    if not absolute:
        return int(c.now() + time)
    return int(time - (c.kernel.wall() - c.now()) if realtime else time)


def _futex_wait(c: Caller, address: int, value: int, deadline: int | None, bits: int) -> Blocking:
    if not bits:
        raise LinuxError(EINVAL)
    if c.number(address, 4) != value:
        raise LinuxError(EAGAIN)
    kernel = c.kernel
    queue = kernel.waiters.setdefault(kernel.futex_key(c.process.space, address), [])
    waiter = Waiter(bits, queue)
    try:
        if not (yield Wait(lambda: waiter.woken, deadline)):
            raise LinuxError(ETIMEDOUT)
        return 0
    finally:
        if not waiter.woken:
            waiter.queue.remove(waiter)


@call("futex")
def futex(
    c: Caller, address: Address, operation: Int, value: Unsigned, timeout: Size, other: Address, last: Unsigned
) -> Blocking:
    """Wait, wake, and move waiters."""
    kernel, space = c.kernel, c.process.space
    realtime = bool(operation & _FUTEX_CLOCK_REALTIME)
    command = operation & ~(_FUTEX_PRIVATE | _FUTEX_CLOCK_REALTIME)
    if command == 0:
        return (
            yield from _futex_wait(
                c, address, value, _deadline(c, timeout, absolute=False, realtime=False), 0xFFFF_FFFF
            )
        )
    if command == 9:
        deadline = _deadline(c, timeout, absolute=True, realtime=realtime)
        return (yield from _futex_wait(c, address, value, deadline, last))
    if command in {1, 10}:
        return kernel.wake(space, address, value, last if command == 10 else 0xFFFF_FFFF)
    if command in {3, 4}:
        if command == 4 and c.number(address, 4) != last:
            raise LinuxError(EAGAIN)
        woken = kernel.wake(space, address, value)
        moved = kernel.requeue(space, address, other, timeout & 0xFFFF_FFFF)
        return woken + moved
    if command == 5:
        return _wake_op(c, address, value, timeout & 0xFFFF_FFFF, other, last)
    raise LinuxError(ENOSYS)


def _wake_op(c: Caller, address: int, count: int, second_count: int, second: int, encoded: int) -> int:
    operation, comparison = encoded >> 28 & 15, encoded >> 24 & 15
    operand = (encoded >> 12 & 0xFFF ^ 0x800) - 0x800
    compared = (encoded & 0xFFF ^ 0x800) - 0x800
    if operation & 8:
        operand = 1 << (operand & 31)
    old = c.number(second, 4, signed=True)
    new = {
        0: lambda: operand,
        1: lambda: old + operand,
        2: lambda: old | operand,
        3: lambda: old & ~operand,
        4: lambda: old ^ operand,
    }.get(operation & 7)
    if new is None or comparison > 5:
        raise LinuxError(ENOSYS)
    c.write(second, struct.pack("<I", new() & 0xFFFF_FFFF))
    space = c.process.space
    woken = c.kernel.wake(space, address, count)
    true = (old == compared, old != compared, old < compared, old <= compared, old > compared, old >= compared)
    if true[comparison]:
        woken += c.kernel.wake(space, second, second_count)
    return woken


# Scheduling, which is the emulator's


answer("sched_setscheduler", "sched_setparam", "sched_setaffinity", "sched_get_priority_min")
answer("sched_getscheduler", "setpriority", "ioprio_set", "ioprio_get", "personality", "membarrier", "sched_setattr")
answer("getpriority", result=20)


@call("sched_yield")
def sched_yield(c: Caller) -> int:
    """Give way."""
    c.kernel.give_way()
    return 0


@call("sched_get_priority_max")
def sched_get_priority_max(c: Caller, policy: Int) -> int:
    """Tell the highest priority."""
    del c
    return 99 if policy in {1, 2} else 0


@call("sched_getparam")
def sched_getparam(c: Caller, pid: Int, parameters: Address) -> int:
    """Tell the priority."""
    del pid
    c.write(parameters, bytes(4))
    return 0


@call("sched_getaffinity")
def sched_getaffinity(c: Caller, pid: Int, size: Unsigned, mask: Address) -> int:
    """Tell which CPUs there are: one."""
    del pid
    if size < 8:
        raise LinuxError(EINVAL)
    c.write(mask, struct.pack("<Q", 1))
    return 8


@call("getcpu")
def getcpu(c: Caller, cpu: Address, node: Address) -> int:
    """Tell which CPU this is."""
    for address in (cpu, node):
        if address:
            c.write(address, bytes(4))
    return 0


_LIMITS: Final = {3: 8 << 20, 7: 1024, 4: 0}
_INFINITE: Final = (1 << 64) - 1


@call("prlimit64")
def prlimit64(c: Caller, pid: Int, resource: Unsigned, new: Address, old: Address) -> int:
    """Tell a limit, or set that of open files."""
    process = _find(c, pid)
    if resource > 15:
        raise LinuxError(EINVAL)
    if old:
        now = process.files.limit if resource == 7 else _LIMITS.get(resource, _INFINITE)
        c.write(old, struct.pack("<QQ", now, _INFINITE if resource == 3 else max(now, 1 << 20)))
    if new and resource == 7:
        process.files.limit = min(c.number(new), 1 << 20)
    return 0


@call("getrlimit")
def getrlimit(c: Caller, resource: Unsigned, old: Address) -> int:
    """Tell a limit."""
    return prlimit64(c, 0, resource, 0, old)


@call("setrlimit")
def setrlimit(c: Caller, resource: Unsigned, new: Address) -> int:
    """Set a limit."""
    return prlimit64(c, 0, resource, new, 0)


# Sending signals


def _check_signal(number: int) -> None:
    if not 0 <= number <= _LAST_SIGNAL:
        raise LinuxError(EINVAL)


@call("kill")
def kill(c: Caller, pid: Int, number: Int) -> int:
    """Send a signal to a process, a group, or all."""
    _check_signal(number)
    if pid > 0:
        targets = [process for process in c.kernel.processes.values() if process.pid == pid]
    elif pid == -1:
        targets = [process for process in c.kernel.processes.values() if process is not c.process]
    else:
        group = -pid or c.process.group
        targets = [process for process in c.kernel.processes.values() if process.group == group]
    if not targets:
        raise LinuxError(ESRCH)
    if number:
        for process in targets:
            c.kernel.delivery.send(process, SignalInfo(number, pid=c.process.pid))
    return 0


@call("tgkill")
def tgkill(c: Caller, pid: Int, tid: Int, number: Int) -> int:
    """Send a signal to a thread."""
    _check_signal(number)
    thread = c.kernel.threads.get(tid)
    if thread is None or pid not in {-1, thread.process.pid}:
        raise LinuxError(ESRCH)
    if number:
        c.kernel.delivery.send_thread(thread, SignalInfo(number, -6, pid=c.process.pid))
    return 0


@call("tkill")
def tkill(c: Caller, tid: Int, number: Int) -> int:
    """Send a signal to a thread."""
    return tgkill(c, -1, tid, number)


@call("rt_sigqueueinfo")
def rt_sigqueueinfo(c: Caller, pid: Int, number: Int, info: Address) -> int:
    """Send a signal with a value."""
    _check_signal(number)
    process = c.kernel.processes.get(pid)
    if process is None:
        raise LinuxError(ESRCH)
    code, sender, uid, value = struct.unpack("<8xi4xiIQ", c.read(info, 32))
    if number:
        c.kernel.delivery.send(process, SignalInfo(number, code, pid=sender, uid=uid, value=value))
    return 0


@call("restart_syscall")
def restart_syscall(c: Caller, ignored: Long) -> int:
    """Refuse: system calls are restarted by making them again."""
    del c, ignored
    raise LinuxError(EINVAL)
