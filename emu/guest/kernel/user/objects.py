"""The ELF files that processes of the kernel guest have mapped, and the names in them."""

from __future__ import annotations

from collections.abc import Sequence

from emu.displaced.frame import Frame
from emu.elf.file import ElfError, ElfKind
from emu.elf.image import Image, image_of_content
from emu.elf.source.inlined import SourceFrame
from emu.elf.symbols import Symbol
from emu.engine.memory.access import Access
from emu.guest import processes
from emu.guest.base import Location
from emu.guest.kernel.user.memory import Area, File
from emu.guest.kernel.user.processes import Process, UserProcesses, own
from emu.guest.objects import LoadedObject, load_bias
from emu.guest.stack_walker import Memory, StackWalker, user_stack


class Objects:
    """The ELF files that processes have mapped.  Implements `emu.guest.processes.Objects`."""

    def __init__(self, table: UserProcesses) -> None:
        self._table = table
        self._images: dict[File, Image | None] = {}
        self._last: dict[int, tuple[LoadedObject, ...]] = {}
        self._here: tuple[LoadedObject, ...] = ()
        """The objects of the process whose stack is followed."""
        self._stacks = StackWalker(table.isa, Memory(table.engine.read, self._object_here))

    def of(self, process: processes.Process) -> tuple[LoadedObject, ...]:
        """Return the objects of a process: the program first, then by address."""
        program = process.executable
        areas = self._table.memory.areas(own(process).space)
        found = [one for area in areas if (one := self.loaded(process, area)) is not None]
        return tuple(sorted(found, key=lambda one: (one.file != program, one.bias)))

    def loaded(self, process: processes.Process, area: processes.Area) -> LoadedObject | None:
        """Return the object whose code is in an area, None if there is none."""
        if not isinstance(area, Area) or not area.vnode or Access.EXECUTE not in area.access:
            return None
        file = self._table.memory.file(area.vnode)
        if file not in self._images:
            try:
                content = self._table.memory.content(area.vnode)
                self._images[file] = image_of_content(self._table.path(area.vnode), content)
            except ElfError:
                self._images[file] = None
        image = self._images[file]
        if image is None or image.kind is ElfKind.RELOCATABLE:
            return None
        areas = self._table.memory.areas
        bias = load_bias(image, area, lambda: [one for one in areas(own(process).space) if one.vnode == area.vnode])
        return None if bias is None else LoadedObject(str(image.path), image, bias, file)

    def at(self, process: processes.Process, address: int) -> LoadedObject | None:
        """Return the object that contains an address of a process."""
        return next((one for one in self.of(process) if one.holds(address)), None)

    def chosen(self, process: processes.Process, loaded: LoadedObject, symbol: Symbol) -> Symbol | None:
        """Return None: no library of the guest has indirect functions."""
        del process, loaded, symbol
        return None

    def exited(self, process: Process) -> None:
        """Keep the objects of a process that ends, because a trace may be printed after its end."""
        self._last[process.pid] = self.of(process)

    def stack(self, frame: Frame, *, chained: bool) -> list[int]:
        """Return the pcs of the current thread's stack, innermost first.

        `chained`: all programs keep frame pointers, so that these are followed.
        """
        if not chained:
            thread = self._table.current
            self._here = self.of(thread.process) if thread is not None else ()
            return self._stacks.pcs(frame)
        isa, load = self._table.isa, self._table.engine.load
        located = self.locate(frame.register(isa.registers.pc), None)
        return user_stack(frame, isa, lambda address: load(address, isa.word), located, leaves_save_pointer=True)

    def _object_here(self, address: int) -> LoadedObject | None:
        return next((one for one in self._here if one.holds(address)), None)

    def locate(self, address: int, pid: int | None) -> Location | None:
        """Name an address of a process, None for the current one; None if no object contains it."""
        found = self._holder(address, pid)
        return None if found is None else found.locate(address)

    def source(self, address: int, pid: int | None) -> Sequence[SourceFrame]:
        """Return the functions and lines of an instruction of a process; empty: not known."""
        found = self._holder(address, pid)
        return () if found is None else found.source(address)

    def _holder(self, address: int, pid: int | None) -> LoadedObject | None:
        """Return the object that contains an address of a process, also of one that has ended."""
        thread = self._table.current if pid is None else None
        process = self._table.process(pid) if pid is not None else thread.process if thread else None
        objects = self._last.get(pid or 0, ()) if process is None else self.of(process)
        return next((one for one in objects if one.holds(address)), None)
