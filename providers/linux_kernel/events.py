"""The probes of proc, sched, io and vminfo on a Linux kernel as a table, and the values they pass.

Each is a tracepoint, or the entry or the return of a function, that the kernel reaches at that
moment.  An argument is one of that tracepoint or function, or the current task, or is read from one
of these.  A function that a kernel has inlined, or was built without, has no probe.

A value is a 64-bit word: a form such as `Field`, or the number of an argument that the tracepoint
or function passes.  `value_of` defines the meaning; `providers.linux_kernel.named` has the machine
code.

Source: DTrace for Linux, user's guide (providers proc, sched and io); illumos sys/vmsystm.h for
vminfo; Linux 6.12 kernel/{exit,fork,signal}.c, kernel/sched/core.c, mm/memory.c.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, TypeAlias

from emu.guest.linux_kernel.guest import LinuxKernelGuest
from emu.support.immutable import immutable
from emu.support.words import WORD_MASK, BadAddressError

_WORD: Final = 8
_INT: Final = 0xFFFF_FFFF
_SIGN: Final = 0x8000_0000


@immutable
class Constant:
    """A value that is always the same."""

    value: int


@immutable
class Current:
    """The address of the current task."""


@immutable
class Field:
    """A member of a structure, by the structure's address; 0 if no memory is mapped there."""

    base: Value
    structure: str
    member: str
    size: int = _WORD


@immutable
class AsInt:
    """A C int in a register: the upper half may be anything."""

    value: Value


@immutable
class Masked:
    """Some bits."""

    value: Value
    mask: int


@immutable
class Negated:
    """Minus a value."""

    value: Value


@immutable
class Within:
    """1 if a value is from `first` to `last`, else 0."""

    value: Value
    first: int
    last: int


@immutable
class Same:
    """1 if two values are equal, else 0."""

    left: Value
    right: Value


@immutable
class Choice:
    """`taken` if a value is not 0, else `other`."""

    test: Value
    taken: Value
    other: Value


Value: TypeAlias = "int | Constant | Current | Field | AsInt | Masked | Negated | Within | Same | Choice"


def is_set(value: Value) -> Within:
    """Return whether a value is not 0."""
    return Within(value, 1, WORD_MASK)


def is_clear(value: Value) -> Within:
    """Return whether a value is 0."""
    return Within(value, 0, 0)


def value_of(value: Value, guest: LinuxKernelGuest, arguments: tuple[int, ...]) -> int:
    """Return a value, from the arguments that the tracepoint or function passes."""

    def of(one: Value) -> int:
        return value_of(one, guest, arguments)

    match value:
        case int():
            return arguments[value]
        case Constant(number):
            found = number
        case Current():
            found = guest.tasks.current()
        case Field(base, structure, member, size):
            found = _load(guest, of(base) + guest.facts.btf.offset(structure, member), size)
        case AsInt(one):
            found = (of(one) & _INT ^ _SIGN) - _SIGN
        case Masked(one, mask):
            found = of(one) & mask
        case Negated(one):
            found = -of(one)
        case Within(one, first, last):
            found = (of(one) - first & WORD_MASK) <= last - first
        case Same(left, right):
            found = of(left) == of(right)
        case Choice(test, taken, other):
            found = of(taken if of(test) else other)
    return found & WORD_MASK


def _load(guest: LinuxKernelGuest, address: int, size: int) -> int:
    try:
        return guest.engine.load(address & guest.isa.address_mask, size)
    except BadAddressError:
        return 0


_TASK: Final = "struct task_struct *"
_BIO: Final = "struct bio *"
_INT_SIZE: Final = 4
_LARGEST_ERROR: Final = 4095
# Masks of a wait status: the signal that ended the process, and whether a core was dumped (bits/waitstatus.h).
_SIGNAL, _DUMPED = 0x7F, 0x80
# The reasons of a process's end (siginfo's si_code of SIGCHLD).
_EXITED, _KILLED, _CORE = 1, 2, 3


class At(Enum):
    """The kind of code at which a probe fires."""

    TRACEPOINT = "tracepoint"
    ENTRY = "entry of a function"
    RETURN = "return of a function"


@immutable
class Shown:
    """An argument of a probe."""

    value: Value
    """At a return, 0 is the result."""
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
    targets: tuple[str, ...]
    """The tracepoint, or the possible names of the function in different kernels."""
    shown: tuple[Shown, ...] = ()
    holds: Value | None = None
    """Not 0 if what is passed means this event; None: it always does."""
    of_entry: bool = False
    """Whether the arguments at the return of a function are those of its entry."""


# A function has failed if its result is the negative number of an error.
_FAILED: Final = Within(AsInt(0), -_LARGEST_ERROR, -1)
# The task that exits is the last of its process.
_IS_LAST: Final = is_clear(Field(Field(0, "task_struct", "signal"), "signal_struct", "live", _INT_SIZE))
_EXIT_CODE: Final = Field(0, "task_struct", "exit_code", _INT_SIZE)
_REASON: Final = Choice(
    Masked(_EXIT_CODE, _SIGNAL),
    Choice(Masked(_EXIT_CODE, _DUMPED), Constant(_CORE), Constant(_KILLED)),
    Constant(_EXITED),
)
_HAS_DEVICE: Final = is_set(Field(0, "bio", "bi_bdev"))


def _is_process(task: Value) -> Value:
    """Return whether a task is the first of its process."""
    return Same(Field(task, "task_struct", "pid", _INT_SIZE), Field(task, "task_struct", "tgid", _INT_SIZE))


# The name of the file that is about to be executed; the function of a program that handles a signal.
_PATH: Final = Field(0, "linux_binprm", "filename")
_HANDLER: Final = Field(2, "k_sigaction", "sa.sa_handler")


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
# The first argument of sched_switch is a bool: the lowest byte of its register.
_PREEMPTED: Final = Masked(0, 0xFF)
_EXEC, _NEW = ("bprm_execve",), ("sched_process_fork",)
# The kernel opens the file before it calls `bprm_execve`.
_EXECUTES: Final = ("do_execveat_common", "do_execveat_common.isra.0", "do_execve", *_EXEC)
EVENTS: Final = (
    Event("proc", "create", _T, _NEW, (_process(1),), _is_process(1)),
    Event("proc", "exec", _E, _EXEC, (Shown(_PATH, "char *"),)),
    Event("proc", "exec-failure", _R, _EXECUTES, (Shown(Negated(AsInt(0)), "int"),), _FAILED),
    Event("proc", "exec-success", _T, ("sched_process_exec",)),
    Event("proc", "exit", _T, _EXIT, (Shown(_REASON, "int"),), _IS_LAST),
    Event("proc", "lwp-create", _T, _NEW, _both(1)),
    Event("proc", "lwp-start", _E, ("schedule_tail",)),
    Event("proc", "lwp-exit", _T, _EXIT),
    Event("proc", "start", _E, ("schedule_tail",), (), _is_process(Current())),
    Event("proc", "signal-send", _T, _GENERATE, (*_both(2), Shown(0, "int")), is_clear(AsInt(4))),
    Event("proc", "signal-discard", _T, _GENERATE, (*_both(2), Shown(0, "int")), is_set(AsInt(4))),
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
        Within(AsInt(0), 1, _SIGNAL),
    ),
    Event("sched", "on-cpu", _E, ("finish_task_switch", "finish_task_switch.isra.0")),
    Event("sched", "off-cpu", _T, _SWITCH, _both(2)),
    Event("sched", "sleep", _T, _SWITCH, (), Choice(_PREEMPTED, Constant(0), AsInt(3))),
    Event("sched", "preempt", _T, _SWITCH, (), _PREEMPTED),
    Event("sched", "wakeup", _T, ("sched_wakeup",), _both(0)),
    Event("sched", "enqueue", _E, ("enqueue_task",), (*_both(1), _CPU)),
    Event("sched", "dequeue", _E, ("dequeue_task",), (*_both(1), _CPU, Shown(Constant(0), "int"))),
    Event("sched", "tick", _E, ("sched_tick", "scheduler_tick"), _both(Current())),
    Event("sched", "surrender", _E, ("do_sched_yield",), _both(Current())),
    Event("sched", "change-pri", _E, ("set_user_nice",), (*_both(0), Shown(1, "int"))),
    Event("io", "start", _T, ("block_bio_queue",), _TRANSFER),
    # The tracepoint block_bio_complete leaves out the transfers of drivers that work with requests.
    Event("io", "done", _E, ("bio_endio",), _TRANSFER, _HAS_DEVICE),
    Event("io", "wait-start", _E, _WAITS, _TRANSFER, _HAS_DEVICE),
    Event("io", "wait-done", _R, _WAITS, _TRANSFER, _HAS_DEVICE, of_entry=True),
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
