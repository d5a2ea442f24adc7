"""Trapline's breakpoints beside a Linux kernel's own kprobes: same boot, program and functions.

Through tracefs the kernel puts a kprobe on each of some functions, after the instruction of
Trapline's breakpoint, and a workload runs.  Trapline records a hit only while the kernel's probe is
armed, which is visible in the kernel's text.  So both must have exactly the same hits; and if the
kernel records them, the same values in the same order: registers, the stack, memory and strings.
In another run kretprobes are compared with Trapline's breakpoints on return instructions.

Source: Linux Documentation/trace/kprobetrace.rst.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from emu.displaced.frame import Frame
from emu.displaced.plans import Branch, Plan, Set
from emu.guest.base import GuestError
from emu.isa.base import Isa
from providers.linux_kernel.sites import LONGEST, entry_site, return_sites, tail_calls
from providers.linux_kernel.text import Hook
from trapline.ftrace.definition import Definition
from trapline.lab.oracle import values
from trapline.lab.oracle.rows import GROUP, Row, read, script
from trapline.machine.linux_kernel_machine import LinuxKernelOptions, TracedLinuxKernel, start

# Functions that the workload calls, often and rarely, and what else is fetched than the first registers and the
# stack: {0} to {2} stand for the registers.
FUNCTIONS: Final = {
    "vfs_read": "m=+0(%{0}):x64 array=+0(%{0}):x8[4]",
    "vfs_write": "m=+0(%{0}):x64 text=+0(%{1}):string",
    "do_sys_openat2": "path=+0(%{1}):string flags=+0(%{2}):x64 bits=%{0}:b4@2/32",
    "vfs_statx": "path=+0(+0(%{1})):string fd=%{0}:s32",
    "kmem_cache_free": "m=+8(%{0}):u32 comm=$comm",
    "fput": "m=+0(+8(%{0})):x64",
    "do_exit": "code=%{0}:s64",
}
# The function that enables a group of events.  Trapline's breakpoints are written there: when the kernel makes a
# probe by a function's name on x86-64, it reads whether the function starts with endbr64, where a breakpoint may be.
_ENABLES: Final = "system_enable_write"
# Functions that return to their callers by return instructions alone; the others return in functions that they jump to.
RETURNS: Final = ("vfs_read", "do_sys_openat2", "vfs_statx", "kmem_cache_alloc_noprof", "getname_flags")
WORKLOAD: Final = (
    "ls -l / >/dev/null; seq 1 300 | sort | tail -n 1 >/dev/null; head -c 1000 /etc/passwd | wc -c >/dev/null"
)


def compare(isa: Isa, functions: tuple[str, ...] = tuple(FUNCTIONS), workload: str = WORKLOAD) -> list[Row]:
    """Run the workload on an ISA's kernel with both probes; return a row for each function.

    A function whose entry displaces a branch, or that has no entry probe, is left out.

    Raises `emu.guest.linux_kernel.errors.KernelFileError`, and `emu.guest.base.GuestError`.
    """
    # The place of the kernel's probe depends on the kernel: it is found with a first machine, from the snapshot.
    asked = start(LinuxKernelOptions(isa=isa))
    places = [place for place in (_place(asked, function) for function in functions) if place is not None]
    rows = [Row(place.function) for place in places]
    names = values.registers(isa)
    fetched = [
        " ".join([f"a{number}=%{name}" for number, name in enumerate(names)])
        + f" near=$stack1 far=$stack5:u64 {FUNCTIONS.get(place.function, '').format(*names)}"
        for place in places
    ]
    events = [
        f"echo 'p:{GROUP}/{place.function} {place.function}+{place.kernels - place.start} {words}' >> kprobe_events"
        for place, words in zip(places, fetched, strict=True)
    ]

    def watch(traced: TracedLinuxKernel) -> None:
        for row, place, words in zip(rows, places, fetched, strict=True):
            event = values.definition(isa, words)
            traced.text.add(place.ours, Hook(_hook(traced, row, place, event)))

    _run(isa, script(events, workload, "kprobe"), watch, rows)
    return rows


def compare_returns(isa: Isa, functions: tuple[str, ...] = RETURNS, workload: str = WORKLOAD) -> list[Row]:
    """Do the same with kretprobes.  A function that is not there, or ends in a jump, is left out.

    Raises `emu.guest.linux_kernel.errors.KernelFileError`, and `emu.guest.base.GuestError`.
    """
    asked = start(LinuxKernelOptions(isa=isa))
    rows, bodies = [], []
    for function in functions:
        symbol = asked.guest.facts.symbols.get(function)
        if symbol is None or _place(asked, function) is None:
            continue
        code = asked.text.code(symbol.value, symbol.size)
        if not any(True for _ in tail_calls(isa, code, symbol.value)):
            rows.append(Row(function, "kretprobe"))
            bodies.append((symbol.value, code))
    events = [f"echo 'r:{GROUP}/{row.function} {row.function} value=$retval:x64' >> kprobe_events" for row in rows]

    def watch(traced: TracedLinuxKernel) -> None:
        for row, (address, code) in zip(rows, bodies, strict=True):
            place = _place(traced, row.function)
            assert place is not None
            inside: Counter[int] = Counter()
            traced.text.add(place.ours, Hook(_entered(traced, address, inside)))
            for site, _ in return_sites(isa, code, address):
                traced.text.add(site, Hook(_left(traced, row, inside)))

    _run(isa, script(events, workload, "kprobe"), watch, rows)
    return rows


def _run(isa: Isa, command: str, watch: Callable[[TracedLinuxKernel], None], rows: list[Row]) -> None:
    """Run the script with Trapline's breakpoints, and compare."""
    console = bytearray()
    traced = start(LinuxKernelOptions(isa=isa, commands=(f"{{ {command}; }} 2>/dev/null",), console=console.extend))
    place = _place(traced, _ENABLES)
    if place is None:
        raise GuestError(f"the start of the kernel's own probes cannot be watched: no probe at {_ENABLES}()")
    began = False

    def enables(_frame: Frame) -> None:
        nonlocal began
        if not began:
            began = True
            watch(traced)

    traced.text.add(place.ours, Hook(enables))
    traced.guest.run(None)
    if traced.guest.machine.status:
        raise GuestError(f"the oracle's script ended with status {traced.guest.machine.status}: {console[-200:]!r}")
    shown = read(bytes(console))
    for row in rows:
        if row.function in shown.counts:
            row.kernel, row.missed = shown.counts[row.function]
        row.compare([record.values for record in shown.records if record.event == row.function])


@dataclass(frozen=True, slots=True)
class _Place:
    function: str
    start: int
    ours: int
    """Address of Trapline's breakpoint."""
    kernels: int
    """Address of the kernel's breakpoint: the next instruction."""
    pushes: int
    """The change of the stack pointer from ours to the kernel's."""


def _place(traced: TracedLinuxKernel, function: str) -> _Place | None:
    symbol = traced.guest.facts.symbols.get(function)
    if symbol is None:
        return None
    found = entry_site(traced.guest.isa, traced.text.code(symbol.value, 3 * LONGEST), symbol.value)
    if found is None:
        return None
    address, decision = found
    if any(isinstance(operation, Branch) for operation in decision.plan.operations):
        return None  # the kernel's probe, after it, would not be hit each time
    pushes = _pushes(decision.plan, traced.guest.isa.registers.sp)
    return _Place(function, symbol.value, address, address + decision.length, pushes)


def _hook(traced: TracedLinuxKernel, row: Row, place: _Place, event: Definition) -> Callable[[Frame], None]:
    """Return a hook that records a hit while the kernel's text at its probe is changed."""
    text, guest, isa = traced.text, traced.guest, traced.guest.isa
    at_rest = text.code(place.kernels, 4)

    def memory(address: int, size: int) -> bytes:
        return guest.load(address, size) if isa.is_kernel_address(address) else guest.user_load(address, size)

    def hook(frame: Frame) -> None:
        if text.code(place.kernels, 4) != at_rest:
            hit = values.Hit(guest.thread().execname, frame, memory, place.pushes, isa.registers.sp)
            row.hit(values.values(event, hit, isa))

    return hook


def _entered(traced: TracedLinuxKernel, start_: int, inside: Counter[int]) -> Callable[[Frame], None]:
    """Return a hook that counts the calls of a task while the kernel's text there is changed."""
    text, tasks = traced.text, traced.guest.tasks
    at_rest = text.code(start_, LONGEST)

    def hook(_frame: Frame) -> None:
        if text.code(start_, LONGEST) != at_rest:
            inside[tasks.current()] += 1

    return hook


def _left(traced: TracedLinuxKernel, row: Row, inside: Counter[int]) -> Callable[[Frame], None]:
    tasks = traced.guest.tasks

    def hook(frame: Frame) -> None:
        task = tasks.current()
        if inside[task]:
            inside[task] -= 1
            row.hit(f"value={frame.results()[0]:#x}")

    return hook


def _pushes(plan: Plan, stack_pointer: str) -> int:
    """Return how an instruction changes the stack pointer."""
    return sum(
        operation.offset
        for operation in plan.operations
        if isinstance(operation, Set) and operation.target == operation.source == stack_pointer
    )
