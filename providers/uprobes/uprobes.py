"""Uprobes: breakpoints by file and offset, in every process that maps the file.

    uprobes = Uprobes(guest.kernel)
    probe = uprobes.register(file, offset, Consumer(handler=..., ret_handler=...))
    uprobes.unregister(probe, consumer)

The life of a hit, as in kernel/events/uprobes.c:

    handle_swbp   the handlers run, the newest consumer's first; if a consumer has a return
                  handler, the return address is replaced
    (simulate)    the kernel produces the effects of the instruction; or:
    SSTEP         a copy runs in a slot of the process's page [uprobes], for one instruction
    SSTEP_ACK     the effects of the copy are corrected: the pc, a pushed return address, the
                  register in place of rip (both in `providers.uprobes.steps`)
    trampoline    the function returns to the page's first slot: the return handlers run, and the
                  program continues at the true address (`providers.uprobes.returns`)

There are two implementations: Python serves the first hit at an address, machine code the next ones
(`providers.uprobes.native`), if the consumers have a native form.

Source: Linux 6.12 kernel/events/uprobes.c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emu.displaced.decision import Code, Emulated, Refused, Stepped
from emu.displaced.frame import Frame
from emu.elf.file import ElfError
from emu.engine.memory.access import Access
from emu.guest.linux.errno import EINVAL, EIO
from emu.guest.linux.fs.regular import RegularFile
from emu.guest.linux.mm.mapped_objects import image_of
from emu.guest.linux.mm.user_code import ProcessCode, SlotPages
from emu.guest.linux.process.process import LinuxObserver
from emu.guest.objects import load_bias
from emu.guest.processes import EXECUTED
from emu.probe.execute_plan import interpret
from emu.probe.patcher import Patcher
from emu.support.words import BadAddressError
from providers.fidelity import Fidelity
from providers.sequences import REACH
from providers.uprobes.hit_description import Description
from providers.uprobes.port import PORTS, Port
from providers.uprobes.records import (
    Books,
    Consumer,
    HandlerResult,
    Installed,
    InstalledWords,
    Uprobe,
    WatchedSpace,
)
from providers.uprobes.returns import Returns
from providers.uprobes.steps import Steps
from providers.uprobes.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emu.guest.linux.kernel import Kernel
    from emu.guest.linux.mm.address_space import Area
    from emu.guest.linux.process.process import Process, Thread
    from emu.probe.patcher import Tracepoint


class UprobeError(Exception):
    """A probe that cannot be registered; `errno` is the kernel's number."""

    def __init__(self, errno: int, why: str) -> None:
        super().__init__(why)
        self.errno = errno


class Uprobes(LinuxObserver):
    """All uprobes of one guest; `port` replaces the ISA's port in `PORTS`."""

    def __init__(self, kernel: Kernel, fidelity: Fidelity = Fidelity.EXACT, port: Port | None = None) -> None:
        self.kernel = kernel
        self.fidelity = fidelity
        self.port = port or PORTS[kernel.isa.name]
        self.problems: list[str] = []
        """Why probes were not installed in mappings that came later: Linux ignores such errors."""
        self._engine = kernel.engine
        self._books = Books()
        self._tasks = Tasks(kernel)
        self._steps = Steps(kernel, self.port, self._tasks, self._put)
        self._returns = Returns(kernel, self.port, self._tasks, self._books.by_words.__getitem__, self._put)
        description = Description(
            kernel, self.port, self._books, self._tasks, self._steps, self._returns, self._forget, self._simulate
        )
        kernel.traps.add(self._hit, description.describe)
        kernel.observers.append(self)

    # -- registering

    def register(self, file: RegularFile, offset: int, consumer: Consumer, ref_ctr_offset: int = 0) -> Uprobe:
        """Add a consumer at an offset of a file; install its breakpoint where the file is mapped.

        Raises `UprobeError` if uprobe_register() would fail; then nothing is changed.
        """
        if consumer.handler is None and consumer.ret_handler is None:
            raise UprobeError(EINVAL, "a consumer needs a handler or a return handler")
        if offset > file.size:
            raise UprobeError(EINVAL, f"offset {offset:#x} is past the end of the file ({file.size:#x} bytes)")
        if offset % self.port.alignment:
            raise UprobeError(EINVAL, f"offset {offset:#x} is not a multiple of {self.port.alignment}")
        if ref_ctr_offset % 2:
            raise UprobeError(EINVAL, f"the reference counter at {ref_ctr_offset:#x} is not aligned")
        probe = self._books.probes.get((file, offset))
        if probe is None:
            probe = self._books.probes[file, offset] = Uprobe(file, offset, ref_ctr_offset)
            self._books.by_words[probe.words.address] = probe
        elif probe.ref_ctr_offset != ref_ctr_offset:
            raise UprobeError(EINVAL, f"offset {offset:#x} is registered with another reference counter")
        else:
            probe.references += 1
        probe.consumers.insert(0, consumer)
        self._changed(probe)
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
        """Remove a consumer; breakpoints without a consumer are removed."""
        if consumer not in probe.consumers:
            return
        probe.consumers.remove(consumer)
        self._changed(probe)
        for space in list(self._books.spaces.values()):
            if not any(other.wants(space.process) for other in probe.consumers):
                for address in space.addresses(probe):
                    self._remove(space, address)
        self._put(probe)

    def _put(self, probe: Uprobe) -> None:
        probe.references -= 1
        if not probe.references:
            self._forget(probe)

    def _forget(self, probe: Uprobe) -> None:
        """Forget a probe without references."""
        del self._books.probes[probe.file, probe.offset]
        del self._books.by_words[probe.words.address]

    def _processes(self) -> list[Process]:
        """Return one process for each address space."""
        return list({process.space: process for process in self.kernel.processes.values() if process.alive}.values())

    def _changed(self, probe: Uprobe) -> None:
        """Discard the data for machine code: a probe's consumers have changed."""
        probe.words.known = 0
        self.kernel.traps.changed()

    # -- installing

    def watch(self, process: Process) -> WatchedSpace:
        """Return the records of a process's address space."""
        if process.space not in self._books.spaces:
            code = ProcessCode(self.kernel.engine, process.space)
            slots = SlotPages(code, self.port.slot, "[uprobes]")
            self._books.spaces[process.space] = WatchedSpace(process, code, Patcher(code), slots)
            self._books.spaces[process.space].patcher.on_change = self.kernel.traps.changed
        return self._books.spaces[process.space]

    def _install(self, process: Process, probe: Uprobe, area: Area) -> None:
        """Write the breakpoint (install_breakpoint).  Raises `UprobeError`."""
        address = area.start + probe.offset - area.offset
        space = self.watch(process)
        if address in space.installed:
            return
        if probe.decision is None:
            self._prepare(probe, address)
        tracepoint = space.patcher.create(address, self.port.breakpoint, "uprobes")
        installed = self._installed(probe, space, tracepoint)
        space.put(installed)
        space.patcher.install(tracepoint)
        self._count(space, installed)

    @staticmethod
    def _installed(probe: Uprobe, space: WatchedSpace, tracepoint: Tracepoint) -> Installed:
        words = InstalledWords(probe=probe.words.address, space=space.words.address, at=tracepoint.address)
        return Installed(probe, space, tracepoint, words=words)

    def _prepare(self, probe: Uprobe, address: int) -> None:
        """Decide about the instruction in the file (prepare_uprobe).  Raises `UprobeError`."""
        probe.code = probe.file.read(probe.offset, self.port.longest)
        if not probe.code:
            raise UprobeError(EIO, f"the file has no data at offset {probe.offset:#x}")
        start = max(0, probe.offset - REACH)
        around = probe.file.read(start, probe.offset - start + self.port.longest + REACH)
        code = Code.at(around, probe.offset - start, address, longest=self.port.longest, around=REACH)
        decision = self.port.treat(code, self.fidelity)
        if isinstance(decision, Refused):
            rule = decision.rule
            raise UprobeError(rule.errno, f"offset {probe.offset:#x}: {rule.why} ({rule.source})")
        assert isinstance(decision, Emulated | Stepped), "uprobes step, they do not run code out of line"
        probe.decision = decision

    def _remove(self, space: WatchedSpace, address: int) -> None:
        installed = space.take(address)
        space.patcher.remove(installed.tracepoint)
        space.patcher.forget(installed.tracepoint)
        if installed.counter:
            _add(space, installed.counter, -1)
        if installed.words.slot and not self._steps.use(installed):
            self._steps.forget(installed)
            space.slots.give_back(installed.words.slot)

    def _count(self, space: WatchedSpace, installed: Installed) -> None:
        """Increment the reference counter, as soon as it is mapped (update_ref_ctr).

        If two writable segments share the counter's page of the file, Linux takes the first mapping
        of it (find_ref_ctr_vma), in which the program does not look; here it is the counter's own.
        """
        offset = installed.probe.ref_ctr_offset
        if not offset or installed.counter:
            return
        areas = [area for area in space.code.space.areas if area.backing is installed.probe.file]
        found = [
            area.start + offset - area.offset
            for area in areas
            if area.offset <= offset < area.offset + area.end - area.start
            and Access.WRITE in area.access
            and not area.shared
        ]
        if len(found) > 1 and self.fidelity is not Fidelity.LINUX:
            wanted = _addresses(installed, offset, areas)
            found = [address for address in found if address in wanted]
        if found:
            installed.counter = found[0]
            _add(space, installed.counter, 1)

    # -- events of processes

    def mapped(self, process: Process, area: Area) -> None:
        """Install the probes of a file in a new mapping of it (uprobe_mmap).

        A probe that cannot be installed is left out.
        """
        for probe in [probe for (file, _), probe in self._books.probes.items() if file is area.backing]:
            if _holds(area, probe) and any(consumer.wants(process) for consumer in probe.consumers):
                try:
                    self._install(process, probe, area)
                except UprobeError as error:
                    self.problems.append(str(error))
        space = self._books.spaces.get(process.space)
        if space is not None:  # the mapping may contain a counter
            for installed in space.installed.values():
                if installed.probe.file is area.backing:
                    self._count(space, installed)

    def unmapped(self, process: Process, areas: Sequence[Area]) -> None:
        """Forget the breakpoints in memory that is unmapped."""
        space = self._books.spaces.get(process.space)
        if space is not None:
            for address in [one for one in space.installed if any(area.start <= one < area.end for area in areas)]:
                installed = space.take(address)
                self._steps.forget(installed)
                space.patcher.forget(installed.tracepoint)

    def executed(self, process: Process) -> None:
        """Install the probes of the program that a process now runs."""
        for area in process.space.areas:
            self.mapped(process, area)

    def before_exec(self, process: Process) -> None:
        """Forget a process whose memory is about to be unmapped."""
        self._leave(process)

    def exited(self, process: Process) -> None:
        """Forget a process that has ended."""
        self._leave(process)

    def _leave(self, process: Process) -> None:
        for thread in process.threads:
            self.thread_ended(thread)
        if process.space.users == 1:
            self._books.spaces.pop(process.space, None)

    def thread_ended(self, thread: Thread) -> None:
        """Drop the pending returns of a thread (uprobe_free_utask)."""
        task = self._tasks.drop(thread)
        if task is not None:
            self._returns.forget(task)

    def forked(self, parent: Process, child: Process) -> None:
        """Give a child its parent's breakpoints and pending returns (uprobe_dup_mmap)."""
        made_by = self.kernel.current
        if made_by is not None:
            self._returns.copy(made_by, child.threads[0])
        space = self._books.spaces.get(parent.space)
        if space is None or child.space is parent.space:
            return
        twin = self.watch(child)
        space.slots.unmap_from(child.space)
        if space.words.trampoline:
            # At the same address, because the copied stack contains it.
            twin.words.trampoline = twin.slots.take_at(space.words.trampoline)
            twin.slots.fill(twin.words.trampoline, self.port.breakpoint)
        for address, installed in space.installed.items():
            twin.code.write_code(address, installed.tracepoint.original)
            tracepoint = twin.patcher.create(address, self.port.breakpoint, "uprobes")
            copy = self._installed(installed.probe, twin, tracepoint)
            copy.counter = installed.counter
            twin.put(copy)
            twin.patcher.install(tracepoint)

    # -- a hit

    def _hit(self, address: int, frame: Frame, _extra: int) -> int:
        """Take a breakpoint (handle_swbp); 0: it is not one of ours."""
        thread = self.kernel.current
        assert thread is not None
        if self._steps.ended_at(thread, address):
            return EXECUTED
        space = self._books.spaces.get(thread.process.space)
        if space is None:
            return 0
        if address == space.words.trampoline:
            return self._returns.returned(thread, frame)
        installed = space.installed.get(address)
        if installed is None:
            return 0
        if self._run_handlers(thread, space, installed, address, frame):
            self._remove(space, address)
        if self._engine.pc == address:  # otherwise a handler has moved the pc: the instruction is skipped
            self._go_on(thread, installed, address)
        return EXECUTED

    def _run_handlers(
        self, thread: Thread, space: WatchedSpace, installed: Installed, address: int, frame: Frame
    ) -> bool:
        """Run the handlers; return whether all say that the breakpoint may go (handler_chain)."""
        remove, wants_return = True, False
        for consumer in tuple(installed.probe.consumers):
            answer = consumer.handler(frame) if consumer.handler is not None else None
            remove &= answer is HandlerResult.REMOVE
            wants_return |= consumer.ret_handler is not None
        if wants_return and not remove:
            self._returns.hijack(thread, space, installed.probe, address)
        return remove and not any(consumer.wants(thread.process) for consumer in installed.probe.consumers)

    def _go_on(self, thread: Thread, installed: Installed, address: int) -> None:
        if isinstance(installed.probe.decision, Stepped):
            self._steps.begin(thread, installed)
        else:
            self._simulate(installed, address)

    def _simulate(self, installed: Installed, address: int) -> None:
        """Carry out the plan of the instruction."""
        decision = installed.probe.decision
        assert isinstance(decision, Emulated)
        try:
            interpret(decision.plan, self.kernel.isa, self._engine, address)
        except BadAddressError as error:
            self._engine.pc = address
            self.kernel.raise_bad_address(error.address)


def _add(space: WatchedSpace, address: int, change: int) -> None:
    """Change a reference counter, which does not become negative."""
    try:
        count = int.from_bytes(space.code.read(address, 2), "little", signed=True) + change
        if count >= 0:
            space.code.space.poke(address, count.to_bytes(2, "little"))
    except BadAddressError:
        return


def _addresses(installed: Installed, offset: int, areas: Sequence[Area]) -> Sequence[int]:
    """Return where a process has a byte of a probe's file, by the file's segments."""
    here = installed.space.code.space.area_at(installed.tracepoint.address)
    try:
        image = image_of(installed.probe.file, "program")
    except ElfError:
        return ()
    bias = None if here is None else load_bias(image, here, lambda: areas)
    return () if bias is None else [address + bias for address in image.addresses_of(offset)]


def _holds(area: Area, probe: Uprobe) -> bool:
    """Return whether a mapping contains the probe's offset and permits a probe (valid_vma)."""
    if area.backing is not probe.file or area.shared or Access.WRITE in area.access:
        return False
    return Access.EXECUTE in area.access and area.offset <= probe.offset < area.offset + area.end - area.start
