"""Uprobes: breakpoints by file and offset, in every process that maps the file.

    uprobes = Uprobes(guest.kernel)
    probe = uprobes.register(file, offset, Consumer(handler=..., ret_handler=...))
    uprobes.unregister(probe, consumer)

The life of a hit, as in kernel/events/uprobes.c:

    handle_swbp       the handlers run, the newest consumer's first; one that wants the return has
    it hijacked (simulate)        the kernel does what the instruction would have done; or SSTEP
    a copy runs in a slot of the process's page [uprobes], for one instruction SSTEP_ACK
    what the copy did is put right: the pc, a pushed return address, the register that stood for rip
    trampoline        a return to the page's first slot: the return handlers run, and the true
    address is gone back to

Source: Linux 6.12 kernel/events/uprobes.c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emu.displaced import Code, Emulated, Refused, Stepped
from emu.engine.access import Access
from emu.frame import Frame
from emu.guest.base import BadAddressError
from emu.guest.linux.code import ProcessCode, SlotPages
from emu.guest.linux.errno import EINVAL, EIO
from emu.guest.linux.inodes import RegularFile
from emu.guest.observer import Observer
from emu.guest.processes import CARRIED_OUT
from emu.isa.linux_signals import SignalInfo
from emu.patcher import Patcher
from emu.plan_execution import compile_plan
from providers.fidelity import Fidelity
from providers.uprobes.port import Port
from providers.uprobes.ports import PORTS
from providers.uprobes.records import Consumer, HandlerResult, Installed, Step, Uprobe, WatchedSpace
from providers.uprobes.returns import Returns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emu.guest.linux.kernel import Kernel
    from emu.guest.linux.process import Process, Thread
    from emu.guest.linux.space import Area, Space

_TRAP_FLAG: Final = 0x100
# Number of x86's exception after a single step.
_DEBUG: Final = 1


class UprobeError(Exception):
    """A probe that cannot be registered; `errno` is the kernel's number."""

    def __init__(self, errno: int, why: str) -> None:
        super().__init__(why)
        self.errno = errno


class Uprobes(Observer):
    """All uprobes of one guest; `port` is what the ISA brings, if it is not to be `PORTS`' own."""

    def __init__(self, kernel: Kernel, fidelity: Fidelity = Fidelity.EXACT, port: Port | None = None) -> None:
        self.kernel = kernel
        self.fidelity = fidelity
        self.port = port or PORTS[kernel.isa.name]
        self.problems: list[str] = []
        """Why probes were not installed in mappings that came later: Linux ignores such errors."""
        self._engine = kernel.engine
        self._probes: dict[tuple[RegularFile, int], Uprobe] = {}
        self._spaces: dict[Space, WatchedSpace] = {}
        self._steps: dict[Thread, Step] = {}
        self._returns = Returns(kernel, self.port, self._put)
        kernel.traps.add(self._hit)
        kernel.exceptions.append(self._exception)
        kernel.observers.append(self)

    # -- registering

    def register(self, file: RegularFile, offset: int, consumer: Consumer, ref_ctr_offset: int = 0) -> Uprobe:
        """Add a consumer at a place in a file, and install its breakpoint where the file is mapped.

        Raises `UprobeError`, as uprobe_register() fails; then nothing is left behind.
        """
        if consumer.handler is None and consumer.ret_handler is None:
            raise UprobeError(EINVAL, "a consumer needs a handler or a return handler")
        if offset > file.size:
            raise UprobeError(EINVAL, f"offset {offset:#x} is past the end of the file ({file.size:#x} bytes)")
        if offset % self.port.alignment:
            raise UprobeError(EINVAL, f"offset {offset:#x} is not a multiple of {self.port.alignment}")
        if ref_ctr_offset % 2:
            raise UprobeError(EINVAL, f"the reference counter at {ref_ctr_offset:#x} is not aligned")
        probe = self._probes.get((file, offset))
        if probe is None:
            probe = self._probes[file, offset] = Uprobe(file, offset, ref_ctr_offset)
        elif probe.ref_ctr_offset != ref_ctr_offset:
            raise UprobeError(EINVAL, f"offset {offset:#x} is registered with another reference counter")
        else:
            probe.references += 1
        probe.consumers.insert(0, consumer)
        try:
            for process in self._processes():
                if consumer.wants(process):
                    for area in process.space.areas:
                        if _holds(area, probe):
                            self._install(process, probe, area)
        except UprobeError:
            self.unregister(probe, consumer)
            raise
        return probe

    def unregister(self, probe: Uprobe, consumer: Consumer) -> None:
        """Remove a consumer; breakpoints that nobody wants any more go."""
        if consumer not in probe.consumers:
            return
        probe.consumers.remove(consumer)
        for space in list(self._spaces.values()):
            if not any(other.wants(space.process) for other in probe.consumers):
                for address, installed in list(space.installed.items()):
                    if installed.probe is probe:
                        self._remove(space, address)
        self._put(probe)

    def _put(self, probe: Uprobe) -> None:
        probe.references -= 1
        if not probe.references:
            del self._probes[probe.file, probe.offset]

    def _processes(self) -> list[Process]:
        """Return one process for each address space there is."""
        return list({process.space: process for process in self.kernel.processes.values() if process.alive}.values())

    # -- installing

    def watch(self, process: Process) -> WatchedSpace:
        """Return the books of a process's address space."""
        if process.space not in self._spaces:
            code = ProcessCode(self.kernel, process.space)
            slots = SlotPages(self.kernel, code, self.port.slot, "[uprobes]")
            self._spaces[process.space] = WatchedSpace(process, code, Patcher(code), slots)
        return self._spaces[process.space]

    def _install(self, process: Process, probe: Uprobe, area: Area) -> None:
        """Write the breakpoint (install_breakpoint).  Raises `UprobeError`."""
        address = area.start + probe.offset - area.offset
        space = self.watch(process)
        if address in space.installed:
            return
        treatment = probe.treatment or self._prepare(probe, address)
        run = compile_plan(treatment.plan, self.kernel.isa) if isinstance(treatment, Emulated) else None
        tracepoint = space.patcher.create(address, self.port.breakpoint, "uprobes")
        space.installed[address] = Installed(probe, tracepoint, run)
        space.patcher.install(tracepoint)
        self._count(space, space.installed[address])

    def _prepare(self, probe: Uprobe, address: int) -> Emulated | Stepped:
        """Look at the instruction as the file has it (prepare_uprobe).  Raises `UprobeError`."""
        probe.code = probe.file.read(probe.offset, self.port.longest)
        if not probe.code:
            raise UprobeError(EIO, f"there is nothing at offset {probe.offset:#x}")
        treatment = self.port.treat(Code(probe.code, address), self.fidelity)
        if isinstance(treatment, Refused):
            rule = treatment.rule
            raise UprobeError(rule.errno, f"offset {probe.offset:#x}: {rule.why} ({rule.source})")
        assert isinstance(treatment, Emulated | Stepped), "uprobes step, they do not run code out of line"
        probe.treatment = treatment
        return treatment

    def _remove(self, space: WatchedSpace, address: int) -> None:
        installed = space.installed.pop(address)
        space.patcher.remove(installed.tracepoint)
        space.patcher.forget(installed.tracepoint)
        if installed.counter:
            _add(space, installed.counter, -1)
        if installed.slot and not any(step.slot == installed.slot for step in self._steps.values()):
            space.slots.give_back(installed.slot)

    @staticmethod
    def _count(space: WatchedSpace, installed: Installed) -> None:
        """Increment the reference counter, once its mapping is there (update_ref_ctr)."""
        offset = installed.probe.ref_ctr_offset
        if not offset or installed.counter:
            return
        for area in space.code.space.areas:
            inside = area.offset <= offset < area.offset + area.end - area.start
            if area.backing is installed.probe.file and inside and Access.WRITE in area.access and not area.shared:
                installed.counter = area.start + offset - area.offset
                _add(space, installed.counter, 1)
                return

    # -- what happens to processes

    def mapped(self, process: Process, area: Area) -> None:
        """Install the probes of a file in a new mapping of it (uprobe_mmap).

        What fails is left out.
        """
        for probe in [probe for (file, _), probe in self._probes.items() if file is area.backing]:
            if _holds(area, probe) and any(consumer.wants(process) for consumer in probe.consumers):
                try:
                    self._install(process, probe, area)
                except UprobeError as error:
                    self.problems.append(str(error))
        space = self._spaces.get(process.space)
        if space is not None:  # it may be where a counter is
            for installed in space.installed.values():
                if installed.probe.file is area.backing:
                    self._count(space, installed)

    def unmapped(self, process: Process, areas: Sequence[Area]) -> None:
        """Forget the breakpoints in memory that goes away."""
        space = self._spaces.get(process.space)
        if space is not None:
            for address in [one for one in space.installed if any(area.start <= one < area.end for area in areas)]:
                space.patcher.forget(space.installed.pop(address).tracepoint)

    def executed(self, process: Process) -> None:
        """Install the probes of what a process runs now."""
        for area in process.space.areas:
            self.mapped(process, area)

    def before_exec(self, process: Process) -> None:
        """Forget a process whose memory goes away."""
        self._leave(process)

    def exited(self, process: Process) -> None:
        """Forget a process that has ended."""
        self._leave(process)

    def _leave(self, process: Process) -> None:
        for thread in process.threads:
            self.thread_ended(thread)
        if process.space.users == 1:
            self._spaces.pop(process.space, None)

    def thread_ended(self, thread: Thread) -> None:
        """Drop the step and the pending returns of a thread (uprobe_free_utask)."""
        step = self._steps.pop(thread, None)
        if step is not None:
            self._put(step.installed.probe)
        self._returns.forget(thread)

    def forked(self, parent: Process, child: Process) -> None:
        """Give a child its parent's breakpoints and pending returns (uprobe_dup_mmap)."""
        made_by = self.kernel.current
        if made_by is not None:
            self._returns.copy(made_by, child.threads[0])
        space = self._spaces.get(parent.space)
        if space is None or child.space is parent.space:
            return
        twin = self.watch(child)
        space.slots.unmap_from(child.space)
        if space.trampoline:
            # At the same address: the stack that was copied holds it.
            twin.trampoline = twin.slots.take_at(space.trampoline)
            twin.slots.fill(twin.trampoline, self.port.breakpoint)
        for address, installed in space.installed.items():
            twin.code.write_code(address, installed.tracepoint.original)
            tracepoint = twin.patcher.create(address, self.port.breakpoint, "uprobes")
            twin.installed[address] = Installed(installed.probe, tracepoint, installed.run, installed.counter)
            twin.patcher.install(tracepoint)

    # -- a hit

    def _hit(self, address: int, frame: Frame, _extra: int) -> int:
        """Take a breakpoint (handle_swbp); 0: it is not one of ours."""
        thread = self.kernel.current
        assert thread is not None
        step = self._steps.get(thread)
        if step is not None and address == step.slot + step.move.length:
            self._engine.discount(1)
            self._engine.pc = step.address + step.move.length
            self._end_step(thread, step)
            return CARRIED_OUT
        space = self._spaces.get(thread.process.space)
        if space is None:
            return 0
        if space.trampoline and address == space.trampoline:
            return self._returns.returned(thread, frame)
        installed = space.installed.get(address)
        if installed is None:
            return 0
        if self._run_handlers(thread, space, installed, address, frame):
            self._remove(space, address)
        if self._engine.pc == address:  # else a handler has moved it: the instruction is skipped
            self._go_on(thread, space, installed, address)
        return CARRIED_OUT

    def _run_handlers(
        self, thread: Thread, space: WatchedSpace, installed: Installed, address: int, frame: Frame
    ) -> bool:
        """Run the handlers.

        Tell whether all of them say that the breakpoint may go (handler_chain).
        """
        remove, wants_return = True, False
        for consumer in tuple(installed.probe.consumers):
            answer = consumer.handler(frame) if consumer.handler is not None else None
            remove &= answer is HandlerResult.REMOVE
            wants_return |= consumer.ret_handler is not None
        if wants_return and not remove:
            self._returns.hijack(thread, space, installed.probe, address)
        return remove and not any(consumer.wants(thread.process) for consumer in installed.probe.consumers)

    def _go_on(self, thread: Thread, space: WatchedSpace, installed: Installed, address: int) -> None:
        treatment = installed.probe.treatment
        if isinstance(treatment, Stepped):
            self._begin_step(thread, space, installed, address, treatment)
            return
        assert installed.run is not None
        try:
            installed.run(self._engine, address)
        except BadAddressError as error:
            self._engine.pc = address
            self.kernel.raise_bad_address(error.address)

    # -- single steps

    def _begin_step(
        self, thread: Thread, space: WatchedSpace, installed: Installed, address: int, move: Stepped
    ) -> None:
        """Run the copy in a slot, for one instruction (pre_ssout)."""
        engine = self._engine
        slot = installed.slot
        if not slot:
            slot = installed.slot = space.slots.take()
            space.slots.fill(slot, move.code + self.port.step_trap)
        installed.probe.references += 1
        saved = flags = 0
        if move.scratch:
            saved = engine.read_register(move.scratch)
            engine.write_register(move.scratch, address + move.length)
        engine.pc = slot
        if not self.port.step_trap:
            flags = engine.read_register(self.kernel.isa.traps.flags)
            engine.write_register(self.kernel.isa.traps.flags, flags | _TRAP_FLAG)
        engine.discount(1)  # the breakpoint: the copy will be counted
        self._steps[thread] = Step(space, installed, address, slot, move, saved, flags)

    def _exception(self, number: int, _pc: int) -> bool:
        """Take x86's debug exception after a step; False: it is not ours."""
        thread = self.kernel.current
        step = self._steps.get(thread) if thread is not None else None
        if thread is None or step is None or self.port.step_trap or number != _DEBUG:
            return False
        engine, move, word = self._engine, step.move, self.kernel.isa.word
        if not move.pops_flags:  # else the flag is the program's own
            self._restore_trap_flag(step)
        if not move.absolute:
            engine.pc += step.address - step.slot
        if move.pushes_flags and not step.flags & _TRAP_FLAG:
            # Linux leaves the flag in what was pushed: a popf would trap then.
            sp = engine.read_register(self.kernel.isa.registers.sp)
            engine.store(sp, 2, engine.load(sp, 2) & ~_TRAP_FLAG)  # two bytes: all that a 16-bit pushf stores
        if move.calls:
            engine.store(engine.read_register(self.kernel.isa.registers.sp), word, step.address + move.length)
        self._end_step(thread, step)
        return True

    def _restore_trap_flag(self, step: Step) -> None:
        """Make the trap flag what it was before the step."""
        name = self.kernel.isa.traps.flags
        flags = self._engine.read_register(name)
        self._engine.write_register(name, flags & ~_TRAP_FLAG | step.flags & _TRAP_FLAG)

    def _end_step(self, thread: Thread, step: Step) -> None:
        del self._steps[thread]
        if step.move.scratch:
            self._engine.write_register(step.move.scratch, step.saved)
        self._put(step.installed.probe)

    def faulted(self, thread: Thread, info: SignalInfo) -> SignalInfo:
        """Abort a step whose copy faulted (arch_uprobe_abort_xol): the probe is hit again."""
        step, at = self._steps.get(thread), self._engine.pc
        if step is None or not step.slot <= at < step.slot + self.port.slot:
            return info
        if not self.port.step_trap:
            self._restore_trap_flag(step)
        self._end_step(thread, step)
        self._engine.pc = step.address
        return SignalInfo(info.number, info.code, address=step.address) if info.address == at else info

    def may_be_interrupted(self, thread: Thread) -> bool:
        """Make signals wait while a thread steps (uprobe_deny_signal)."""
        return thread not in self._steps

    def system_call(self, thread: Thread, name: str, arguments: Sequence[int]) -> None:
        """End the step of a system call: Unicorn does not trap after it."""
        del name, arguments
        step = self._steps.get(thread)
        if step is not None and not self.port.step_trap and self._engine.pc == step.slot + step.move.length:
            self._exception(_DEBUG, 0)


def _add(space: WatchedSpace, address: int, change: int) -> None:
    """Change a reference counter, which does not go below zero."""
    try:
        count = int.from_bytes(space.code.read(address, 2), "little", signed=True) + change
        if count >= 0:
            space.code.space.poke(address, count.to_bytes(2, "little"))
    except BadAddressError:
        return


def _holds(area: Area, probe: Uprobe) -> bool:
    """Return whether a mapping holds the probe's place and may have it (valid_vma)."""
    if area.backing is not probe.file or area.shared or Access.WRITE in area.access:
        return False
    return Access.EXECUTE in area.access and area.offset <= probe.offset < area.offset + area.end - area.start
