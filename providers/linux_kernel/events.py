"""The probes of proc, sched, io and vminfo on a Linux kernel, as a table.

Each is a tracepoint, or the entry or the return of a function, that the kernel reaches at that
moment.  An argument is one of that tracepoint or function, or the current task, or is read from one
of these.  A function that a kernel has inlined, or was built without, has no probe.

Source: DTrace for Linux, user's guide (providers proc, sched and io); illumos sys/vmsystm.h for
vminfo; Linux 6.12 kernel/{exit,fork,signal}.c, kernel/sched/core.c, mm/memory.c.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from emu.bad_address import BadAddressError
from emu.guest.linux_kernel.guest import LinuxKernelGuest
from emu.immutable import immutable

_TASK: Final = "struct task_struct *"
_BIO: Final = "struct bio *"
_INT: Final = struct.Struct("<i")
_LARGEST_ERROR: Final = 4095
_SIGN: Final = 0x8000_0000
# Masks of a wait status: the signal that ended the process, and whether a core was dumped (bits/waitstatus.h).
_SIGNAL, _DUMPED = 0x7F, 0x80
# The reasons of a process's end (siginfo's si_code of SIGCHLD).
_EXITED, _KILLED, _CORE = 1, 2, 3

Arguments = tuple[int, ...]


class At(Enum):
    """The place of a probe."""

    TRACEPOINT = "tracepoint"
    ENTRY = "entry of a function"
    RETURN = "return of a function"


class Constant(NamedTuple):
    """A value that is always the same."""

    value: int


class Pointee(NamedTuple):
    """The word that is a member of a structure to which a passed argument points."""

    number: int
    structure: str
    member: str


Value = int | Constant | Pointee | Callable[["LinuxKernelGuest", Arguments], int]


@immutable
class Shown:
    """An argument of a probe."""

    value: Value
    """The number of the passed argument, a form that machine code finds too, or a function that
    finds the value; at a return, 0 is the result."""
    native: str = ""
    """Its type, "" if it has none."""
    translated: str = ""
    """Its translated type, "" if it is not translated."""


@immutable
class Event:
    """A probe."""

    provider: str
    name: str
    at: At
    places: tuple[str, ...]
    """The tracepoint, or the possible names of the function in different kernels."""
    shown: tuple[Shown, ...] = ()
    holds: Callable[[LinuxKernelGuest, Arguments], bool] | None = None
    """Whether the arguments mean this event; None: always."""
    of_entry: bool = False
    """Whether the arguments at the return of a function are those of its entry."""


def _read_int(guest: LinuxKernelGuest, address: int, structure: str, member: str) -> int:
    try:
        data = guest.load(address + guest.facts.btf.offset(structure, member), _INT.size)
    except BadAddressError:
        return 0
    return int(_INT.unpack(data)[0])


def _read_word(guest: LinuxKernelGuest, address: int, structure: str, member: str) -> int:
    try:
        return guest.engine.load(address + guest.facts.btf.offset(structure, member), 8)
    except BadAddressError:
        return 0


def _current(guest: LinuxKernelGuest, _arguments: Arguments) -> int:
    return guest.tasks.current()


def _as_int(value: int) -> int:
    """Return the C int in a register: the upper half may be anything."""
    return (value & 0xFFFF_FFFF ^ _SIGN) - _SIGN


def _failed(_guest: LinuxKernelGuest, arguments: Arguments) -> bool:
    return -_LARGEST_ERROR <= _as_int(arguments[0]) < 0


def _error(_guest: LinuxKernelGuest, arguments: Arguments) -> int:
    return -_as_int(arguments[0])


def _is_last(guest: LinuxKernelGuest, arguments: Arguments) -> bool:
    """Return whether the task that exits is the last of its process."""
    signals = _read_word(guest, arguments[0], "task_struct", "signal")
    return _read_int(guest, signals, "signal_struct", "live") == 0


def _reason(guest: LinuxKernelGuest, arguments: Arguments) -> int:
    code = _read_int(guest, arguments[0], "task_struct", "exit_code")
    return (_CORE if code & _DUMPED else _KILLED) if code & _SIGNAL else _EXITED


def _is_process(guest: LinuxKernelGuest, task: int) -> bool:
    """Return whether a task is the first of its process."""
    return _read_int(guest, task, "task_struct", "pid") == _read_int(guest, task, "task_struct", "tgid")


def _has_device(guest: LinuxKernelGuest, arguments: Arguments) -> bool:
    return _read_word(guest, arguments[0], "bio", "bi_bdev") != 0


def value_of(value: Value, guest: LinuxKernelGuest, arguments: Arguments) -> int:
    """Return the value of an argument."""
    match value:
        case int():
            return arguments[value]
        case Constant(number):
            return number
        case Pointee(number, structure, member):
            return _read_word(guest, arguments[number], structure, member)
    return value(guest, arguments)


# The name of the file that is about to be executed; the function of a program that handles a signal.
_PATH: Final = Pointee(0, "linux_binprm", "filename")
_HANDLER: Final = Pointee(2, "k_sigaction", "sa.sa_handler")


def _thread(value: Value) -> Shown:
    return Shown(value, _TASK, "lwpsinfo_t *")


def _process(value: Value) -> Shown:
    return Shown(value, _TASK, "psinfo_t *")


def _both(value: Value) -> tuple[Shown, ...]:
    return _thread(value), _process(value)


_TRANSFER: Final = (Shown(0, _BIO, "bufinfo_t *"), Shown(0, _BIO, "devinfo_t *"), Shown(0, _BIO, "fileinfo_t *"))
# The numbers of pages that the tracepoints mm_vmscan_lru_isolate and mm_vmscan_lru_shrink_inactive pass.
_SCANNED, _RECLAIMED = 3, 2
_COUNTED: Final = (Shown(Constant(1), "int"),)
_CPU: Final = Shown(Constant(0), "int", "cpuinfo_t *")

_T, _E, _R = At.TRACEPOINT, At.ENTRY, At.RETURN
_SWITCH, _GENERATE, _EXIT = ("sched_switch",), ("signal_generate",), ("sched_process_exit",)
_WAITS: Final = ("submit_bio_wait",)
_EXEC, _NEW = ("bprm_execve",), ("sched_process_fork",)
# The kernel opens the file before it calls `bprm_execve`.
_EXECUTES: Final = ("do_execveat_common", "do_execveat_common.isra.0", "do_execve", *_EXEC)
EVENTS: Final = (
    Event("proc", "create", _T, _NEW, (_process(1),), lambda guest, passed: _is_process(guest, passed[1])),
    Event("proc", "exec", _E, _EXEC, (Shown(_PATH, "char *"),)),
    Event("proc", "exec-failure", _R, _EXECUTES, (Shown(_error, "int"),), _failed),
    Event("proc", "exec-success", _T, ("sched_process_exec",)),
    Event("proc", "exit", _T, _EXIT, (Shown(_reason, "int"),), _is_last),
    Event("proc", "lwp-create", _T, _NEW, _both(1)),
    Event("proc", "lwp-start", _E, ("schedule_tail",)),
    Event("proc", "lwp-exit", _T, _EXIT),
    Event(
        "proc", "start", _E, ("schedule_tail",), (), lambda guest, _passed: _is_process(guest, guest.tasks.current())
    ),
    Event("proc", "signal-send", _T, _GENERATE, (*_both(2), Shown(0, "int")), lambda _guest, passed: not passed[4]),
    Event("proc", "signal-discard", _T, _GENERATE, (*_both(2), Shown(0, "int")), lambda _guest, passed: passed[4] > 0),
    Event(
        "proc",
        "signal-handle",
        _T,
        ("signal_deliver",),
        (Shown(0, "int"), Shown(1, "struct kernel_siginfo *"), Shown(_HANDLER, "void *")),
    ),
    Event(
        "proc",
        "signal-clear",
        _R,
        ("do_sigtimedwait", "do_sigtimedwait.isra.0"),
        (Shown(0, "int"),),
        lambda _guest, passed: 0 < passed[0] <= _SIGNAL,
    ),
    Event("sched", "on-cpu", _E, ("finish_task_switch", "finish_task_switch.isra.0")),
    Event("sched", "off-cpu", _T, _SWITCH, _both(2)),
    Event("sched", "sleep", _T, _SWITCH, (), lambda _guest, passed: not passed[0] and passed[3] != 0),
    Event("sched", "preempt", _T, _SWITCH, (), lambda _guest, passed: bool(passed[0])),
    Event("sched", "wakeup", _T, ("sched_wakeup",), _both(0)),
    Event("sched", "enqueue", _E, ("enqueue_task",), (*_both(1), _CPU)),
    Event("sched", "dequeue", _E, ("dequeue_task",), (*_both(1), _CPU, Shown(Constant(0), "int"))),
    Event("sched", "tick", _E, ("sched_tick", "scheduler_tick"), _both(_current)),
    Event("sched", "surrender", _E, ("do_sched_yield",), _both(_current)),
    Event("sched", "change-pri", _E, ("set_user_nice",), (*_both(0), Shown(1, "int"))),
    Event("io", "start", _T, ("block_bio_queue",), _TRANSFER),
    # The tracepoint block_bio_complete leaves out the transfers of drivers that work with requests.
    Event("io", "done", _E, ("bio_endio",), _TRANSFER, _has_device),
    Event("io", "wait-start", _E, _WAITS, _TRANSFER, _has_device),
    Event("io", "wait-done", _R, _WAITS, _TRANSFER, _has_device, of_entry=True),
    Event("vminfo", "as_fault", _E, ("handle_mm_fault",), _COUNTED),
    Event("vminfo", "zfod", _E, ("do_anonymous_page",), _COUNTED),
    Event("vminfo", "cow_fault", _E, ("do_wp_page",), _COUNTED),
    Event("vminfo", "pgswapin", _E, ("do_swap_page",), _COUNTED),
    Event("vminfo", "pgswapout", _E, ("swap_writepage",), _COUNTED),
    Event("vminfo", "pgrrun", _E, ("balance_pgdat",), _COUNTED),
    Event("vminfo", "scan", _T, ("mm_vmscan_lru_isolate",), (Shown(_SCANNED, "int"),)),
    Event("vminfo", "dfree", _T, ("mm_vmscan_lru_shrink_inactive",), (Shown(_RECLAIMED, "int"),)),
    Event("vminfo", "pgpgout", _T, ("mm_vmscan_write_folio",), _COUNTED),
)  # fmt: skip
PROVIDERS: Final[Mapping[str, tuple[Event, ...]]] = {
    name: tuple(event for event in EVENTS if event.provider == name) for name in ("proc", "sched", "io", "vminfo")
}
