"""pid and USDT probes of programs on a real Linux kernel: by the kernel's own uprobes.

fasttrap would write breakpoints into the pages of a program, which on a real kernel are pages of
the page cache.  The kernel has what this needs: copies of the pages for each process, forks, execs
and execution out of line.  So `uprobe_register()` is called in the kernel for each place, with a
consumer whose handler is a function of ours; DTrace for Linux does the same.  The kernel decides
which instructions may be probed.  Its work at a hit takes virtual time.

A probe on a return instruction fires before the instruction: the registers have the results
already.  Other jumps fire a return probe if they leave the function.

Source: Linux 6.12 kernel/events/uprobes.c (uprobe_register, handler_chain),
include/linux/uprobes.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from errno import errorcode
from typing import TYPE_CHECKING, Final

from emu.bad_address import BadAddressError
from emu.displaced import Emulated, OutOfLine
from emu.guest import processes
from emu.guest.linux_kernel.kernel_calls import KernelCallError, KernelCalls, error_of
from emu.guest.linux_kernel.program_cpu import ProgramCpu
from emu.guest.linux_kernel.programs import Process, Programs
from emu.plan_execution import compile_plan
from providers.fasttrap.fasttrap import EVERYWHERE, Fasttrap, TracepointError
from providers.fasttrap.records import AFTER, Point, Probe, Target
from providers.fidelity import Fidelity

if TYPE_CHECKING:
    from emu.guest.linux_kernel.guest import LinuxKernelGuest
    from providers.base import Framework

_POINTER: Final = struct.Struct("<Q")
# The kernel's function that allocates memory, by its names since Linux 6.10 and before.
_ALLOCATORS: Final = ("vmalloc_noprof", "vmalloc")
# The bytes that are allocated at a time for consumers.
_CHUNK: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class _Consumer:
    """A place of a file that the kernel watches."""

    address: int
    """Address of the struct uprobe_consumer."""
    file: object
    offset: int


class KernelUprobes(Fasttrap):
    """The probes of programs.  Probes must be enabled while kernel functions may be called."""

    def __init__(
        self,
        guest: LinuxKernelGuest,
        programs: Programs,
        framework: Framework,
        report: Callable[[str], object] = lambda _text: None,
    ) -> None:
        """Make none yet.  Raises `emu.guest.linux_kernel.executable.NoRoomError`."""
        super().__init__(programs, framework, Fidelity.EXACT, report=report)
        self._guest = guest
        self._programs = programs
        self.calls = KernelCalls(guest, self._called)
        btf = guest.facts.btf
        self._handler_at = btf.offset("uprobe_consumer", "handler")
        size = btf.struct_size("uprobe_consumer")
        self._size = size + -size % 64
        self._room = range(0)
        """What is left of the memory for consumers."""
        self._consumers: dict[tuple[object, int], _Consumer] = {}
        self.meet: Callable[[int, int], bool] = lambda _pid, _pc: False
        """Asked at each hit, with the process and the pc, before probes fire; True: the machine is
        to stop, and the same hit is met again when it continues."""

    # -- registering

    def watch_place(self, process: processes.Process, address: int, semaphore: int = 0) -> None:
        """Let the kernel watch an address of a process.  Raises `TracepointError`."""
        assert isinstance(process, Process)
        loaded = self._programs.at(process, address)
        offset = None if loaded is None else loaded.image.offset_of(address - loaded.bias)
        if loaded is None or offset is None:
            raise TracepointError(f"no file is mapped at {address:#x} in pid {process.pid}")
        if (loaded.file, offset) in self._consumers:
            return
        assert isinstance(loaded.file, int)
        counter = loaded.image.offset_of(semaphore - loaded.bias) if semaphore else 0
        content = bytearray(self._size)
        _POINTER.pack_into(content, self._handler_at, self.calls.callback)
        try:
            place = self._take()
            self._guest.store(place, bytes(content))
            result = self.calls.call("uprobe_register", loaded.file, offset, counter or 0, place)
        except KernelCallError as error:
            raise TracepointError(str(error)) from None
        number = error_of(result)
        if number:
            name = errorcode.get(number, str(number))
            raise TracepointError(f"no tracepoint at {address:#x} in {loaded.name}: the kernel refuses it ({name})")
        self._consumers[loaded.file, offset] = _Consumer(place, loaded.file, offset)

    def _take(self) -> int:
        """Return the address of a new consumer, in memory that the kernel allocates.

        Raises `KernelCallError` if it has none.
        """
        if len(self._room) < self._size:
            known = self._guest.facts.symbols
            address = self.calls.call(next((name for name in _ALLOCATORS if known.get(name)), _ALLOCATORS[0]), _CHUNK)
            if not self._guest.isa.is_kernel_address(address):
                raise KernelCallError("the kernel has no memory for more probes")
            self._room = range(address, address + _CHUNK)
        place, self._room = self._room.start, self._room[self._size :]
        return place

    def _install(self, probe: Probe, address: int) -> None:
        target = probe.target
        key = (target.process.pid, address)
        point = self._points.get(key)
        if point is None or not point.target.live:
            point = self._points[key] = self._look_at(probe, target, address)
        self.watch_place(target.process, address, probe.semaphores[0] if probe.semaphores else 0)
        (point.after if probe.type in AFTER else point.before).insert(0, probe)

    def _look_at(self, probe: Probe, target: Target, address: int) -> Point:
        try:
            treatment = self.look(target, address, probe.function if probe.size != EVERYWHERE else 0)
            code = target.patcher.original(address, 1)
        except BadAddressError:
            raise TracepointError(f"no code is loaded at {address:#x} in pid {target.process.pid}") from None
        found = treatment if isinstance(treatment, Emulated | OutOfLine) else OutOfLine(treatment.rule, 1, code)
        return Point(target, address, found, target.patcher.create(address, code, "uprobes"))

    def _remove(self, probe: Probe, address: int) -> None:
        """Stop firing a probe; the kernel keeps its uprobe, which does nothing any more."""
        point = self._points.get((probe.target.process.pid, address))
        if point is None or point.target is not probe.target:
            return
        users = point.after if probe.type in AFTER else point.before
        if probe in users:
            users.remove(probe)

    def _count(self, probe: Probe, change: int) -> None:
        """Do nothing: the kernel counts in semaphores."""

    # -- hits

    def _called(self, _consumer: int, registers: int) -> bool:
        """Fire the probes of a hit (the handler of a consumer)."""
        programs = self._programs
        thread = programs.current
        if thread is None:
            return False
        with programs.trapped(registers):
            pc = programs.cpu.pc
            if self.meet(thread.process.pid, pc):
                return True
            point = self._points.get((thread.process.pid, pc))
            if point is not None:
                self._hits.fire_before(thread, point, programs.frame)
                self._fire_returns(point, programs.cpu)
        return False

    def _fire_returns(self, point: Point, cpu: ProgramCpu) -> None:
        if not point.after:
            return
        treatment = point.treatment
        if not isinstance(treatment, Emulated):
            return  # not a jump: the function is not left
        after = cpu.copy()
        try:
            compile_plan(treatment.plan, cpu.isa)(after, point.address)
        except (BadAddressError, KeyError):
            return
        self._hits.fire_after(point, after.pc)
