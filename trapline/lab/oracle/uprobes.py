"""Trapline's uprobes beside a Linux kernel's `uprobe_events`: same boot, process and functions.

A first run finds functions of busybox that the workload calls.  In the second run each of them has
an event of the kernel's, and a probe of Trapline's that reads the same fetch arguments
(`trapline.ftrace`).  The records of the workload's processes must be equal, one by one.  In a third
run the same is done at the returns.

Source: Linux Documentation/trace/uprobetracer.rst.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from emu.elf.image import Image
from emu.elf.symbols import Symbol
from emu.guest.base import GuestError
from emu.guest.linux_kernel.programs import Process
from emu.isa.base import Isa
from emu.support.words import BadAddressError
from providers.linux_kernel.sites import return_sites, tail_calls
from providers.linux_kernel.uprobes import KernelUprobes
from trapline.lab.oracle import values as oracle_values
from trapline.lab.oracle.rows import GROUP, Row, read, script
from trapline.machine.linux_kernel_machine import LinuxKernelOptions, TracedLinuxKernel, start

WORKLOAD: Final = "ls -l / >/dev/null; seq 1 30 >/tmp/n; sort -r /tmp/n >/dev/null; wc /etc/passwd >/dev/null"
# The names of the workload's processes once they have executed busybox.
PROGRAMS: Final = frozenset({"ls", "seq", "sort", "wc"})
_FILE: Final = "/bin/busybox"
# The number of functions, and the hits that each of them may have.
_MOST: Final = 40
_HITS: Final = range(2, 25)
# {0} to {2} stand for the registers of arguments.
_FETCHED: Final = (
    "a=%{0} b=%{1}:u32 c=%{2}:s16 d=%{0}:x8 bits=%{0}:b4@3/32 sp=$stack near=$stack0 far=$stack4:s64 m=+8($stack):x32 "
    "array=+0($stack):x8[4] file=@+0x10:x32 text=+0(%{0}):string other=+0(%{1}):string comm=$comm"
)
_RETURNED: Final = "value=$retval small=$retval:s32 text=+0($retval):string near=$stack1 comm=$comm"


@dataclass(slots=True)
class _Run:
    """A machine whose $target is about to execute the workload, with Trapline's uprobes."""

    traced: TracedLinuxKernel
    process: Process
    image: Image
    uprobes: KernelUprobes
    console: bytearray


def compare_programs(isa: Isa) -> list[Row]:
    """Compare the entries of functions; return a row for each.

    Raises `emu.guest.linux_kernel.errors.KernelFileError`, and `emu.guest.base.GuestError`.
    """
    image = _image(isa)
    functions = _called(isa, image)
    event = _FETCHED.format(*oracle_values.registers(isa))
    definition = oracle_values.definition(isa, event)
    rows = [Row(f"{one.value:#x}", "uprobe") for one in functions]
    run = _start(isa, image, "p", functions, event)

    def values(_address: int) -> str:
        return oracle_values.values(definition, _hit(run, 0), isa)

    _watch(run, {one.value: row for one, row in zip(functions, rows, strict=True)}, values)
    return _finish(run, rows)


def compare_program_returns(isa: Isa) -> list[Row]:
    """Compare the returns of the functions that are left by return instructions alone.

    Raises the same.
    """
    image = _image(isa)
    definition = oracle_values.definition(isa, _RETURNED, returns=True)
    places: dict[int, Row] = {}
    left, rows = [], []
    for one in _called(isa, image):
        code = image.read(one.value, one.size)
        if any(True for _ in tail_calls(isa, code, one.value)):
            continue
        row = Row(f"{one.value:#x}", "uretprobe")
        sites = dict.fromkeys((address for address, _ in return_sites(isa, code, one.value)), row)
        if sites:
            places |= sites
            left.append(one)
            rows.append(row)
    run = _start(isa, image, "r", left, _RETURNED)
    # The kernel's probe is met after the return instruction, which has taken the return address off the stack.
    popped = 0 if isa.registers.link else isa.word

    def values(_address: int) -> str:
        return oracle_values.values(definition, _hit(run, popped), isa)

    _watch(run, places, values)
    return _finish(run, rows)


def _image(isa: Isa) -> Image:
    programs = start(LinuxKernelOptions(isa=isa)).guest.programs
    image = None if programs is None else programs.file(_FILE)
    if image is None:
        raise GuestError("this kernel's programs cannot be probed, or busybox is not an ELF file")
    return image


def _called(isa: Isa, image: Image) -> list[Symbol]:
    """Return functions that the workload calls, by address."""
    traced = start(LinuxKernelOptions(isa=isa, commands=(WORKLOAD,)))
    counts: Counter[int] = Counter()

    def note(address: int) -> Callable[[], None]:
        def called() -> None:
            counts[address] += 1

        return called

    for one in image.functions:
        traced.guest.engine.code.on_code(one.value, note(one.value))
    traced.guest.run(None)
    found = sorted({one.value: one for one in image.functions if counts[one.value] in _HITS}.items())
    return [one for _, one in found[:: max(1, len(found) // _MOST)]]


def _start(isa: Isa, image: Image, kind: str, functions: list[Symbol], fetched: str) -> _Run:
    places = " ".join(f"{number}:{image.offset_of(one.value):#x}" for number, one in enumerate(functions))
    words = fetched.replace("$", "\\$")
    event = f"{kind}:{GROUP}/e${{e%%:*}} {_FILE}:${{e#*:}} {words}"
    events = [f'for e in {places}; do echo "{event}" >> uprobe_events; done']
    console = bytearray()
    command = f"{{ {script(events, WORKLOAD, 'uprobe')}; }} 2>/dev/null"
    traced = start(LinuxKernelOptions(isa=isa, commands=(command,), console=console.extend))
    traced.programs.run_to_program(traced.target)
    programs = traced.guest.programs
    process = None if programs is None else programs.process(traced.target)
    if programs is None or process is None:
        raise GuestError("the process of the workload is not found")
    uprobes = KernelUprobes(traced.guest, programs, traced.dtrace)
    uprobes.calls.here()
    return _Run(traced, process, image, uprobes, console)


def _hit(run: _Run, popped: int) -> oracle_values.Hit:
    guest, programs = run.traced.guest, run.traced.guest.programs
    assert programs is not None
    base = run.image.segments[0].vaddr - (run.image.offset_of(run.image.segments[0].vaddr) or 0)
    comm = guest.tasks.name(guest.tasks.current())

    def memory(address: int, size: int) -> bytes:
        try:
            return guest.user_load(address, size)
        except BadAddressError:
            # The kernel reads a page of the program that is not in memory from its file.
            data = run.image.read(address, size)
            if len(data) != size:
                raise
            return data

    return oracle_values.Hit(comm, programs.frame, memory, popped, guest.isa.registers.sp, base)


def _watch(run: _Run, places: dict[int, Row], values: Callable[[int], str]) -> None:
    """Record the hits of Trapline's uprobes in the workload's processes."""
    tasks = run.traced.guest.tasks

    def meet(_pid: int, pc: int) -> bool:
        row = places.get(pc)
        if row is not None and tasks.name(tasks.current()) in PROGRAMS:
            row.hit(values(pc))
        return False

    run.uprobes.meet(meet)
    for address in places:
        run.uprobes.watch_address(run.process, address, everywhere=True)


def _of_workload(values: str) -> bool:
    """Return whether a hit was in the workload.

    The name before a record is that of the process at its end.
    """
    return values.rpartition("comm=")[2].strip('"') in PROGRAMS


def _finish(run: _Run, rows: list[Row]) -> list[Row]:
    """Run the workload and compare; return the rows with hits of either."""
    run.traced.guest.run(None)
    if run.traced.guest.machine.status:
        raise GuestError(f"the oracle's script ended with an error: {bytes(run.console[-200:])!r}")
    shown = read(bytes(run.console))
    for number, row in enumerate(rows):
        name = f"e{number}"
        records = [one.values for one in shown.records if one.event == name and _of_workload(one.values)]
        # The kernel's own count includes the shell, which runs before and after the workload.
        row.kernel = len(records) if name in shown.counts else None
        row.compare(records)
    return [row for row in rows if row.ours or row.kernel]
