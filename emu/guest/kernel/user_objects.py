"""The ELF files that processes of the kernel guest have mapped.

Their symbols, and stacks that lead through them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emu.elf import Image
from emu.elf_file import ElfError, ElfKind
from emu.engine.access import Access
from emu.engine.pages import PAGE
from emu.frame import Frame
from emu.guest.base import BadAddressError, Location
from emu.guest.kernel.user_memory import Area, File
from emu.guest.kernel.user_processes import Process
from emu.guest.objects import LoadedObject

if TYPE_CHECKING:
    from emu.elf_symbols import Symbol
    from emu.guest.kernel.userland import Userland

# Frames of the longest user stack that is walked.
_DEEPEST: Final = 512


class Objects:
    """The ELF files that processes have mapped.  Implements `emu.guest.processes.Objects`."""

    def __init__(self, userland: Userland) -> None:
        self._userland = userland
        self._images: dict[File, Image | None] = {}
        self._last: dict[int, tuple[LoadedObject, ...]] = {}

    def of(self, process: Process) -> tuple[LoadedObject, ...]:
        """Return the objects of a process: the program first, then by address."""
        program = process.executable
        found = [one for area in self._userland.memory.areas(process.space) if (one := self.loaded(area)) is not None]
        return tuple(sorted(found, key=lambda one: (one.file != program, one.bias)))

    def loaded(self, area: Area) -> LoadedObject | None:
        """Return the object whose code an area holds, None if it holds no object's."""
        if not area.vnode or Access.EXECUTE not in area.access:
            return None
        file = self._userland.memory.file(area.vnode)
        if file not in self._images:
            try:
                self._images[file] = Image(
                    self._userland.path(area.vnode), content=self._userland.memory.content(area.vnode)
                )
            except ElfError:
                self._images[file] = None
        image = self._images[file]
        if image is None or image.kind is ElfKind.RELOCATABLE or (address := image.address_of(area.offset)) is None:
            return None
        return LoadedObject(str(image.path), image, area.start - address, file)

    def at(self, process: Process, address: int) -> LoadedObject | None:
        """Return the object that holds an address of a process."""
        return next((one for one in self.of(process) if one.holds(address)), None)

    def chosen(self, _process: Process, _loaded: LoadedObject, _symbol: Symbol) -> Symbol | None:
        """Return nothing: no library of the guest has indirect functions."""
        return None

    def exited(self, process: Process) -> None:
        """Keep the objects of a process that ends: a trace may be printed after its end."""
        self._last[process.pid] = self.of(process)

    def stack(self, frame: Frame) -> list[int]:
        """Return the pcs of the current thread's stack by frame pointers, innermost first.

        On the first instruction of a function the frame is still the caller's: its own return
        address is where a call left it.
        """
        registers, calling = self._userland.isa.registers, self._userland.isa.calling
        load, word = self._userland.engine.load, self._userland.isa.word
        pc, pointer = frame.register(registers.pc), frame.register(registers.fp)
        pcs = [pc]
        located = self.locate(pc, None)
        try:
            if located is not None and located.symbol and not located.offset:
                pcs.append(frame.register(registers.link) if registers.link else frame.stack_word(0))
            sp = frame.register(registers.sp)
            while len(pcs) < _DEEPEST and pointer >= sp and not pointer % word:
                address = load(pointer + calling.frame_return, word)
                following = load(pointer + calling.frame_next, word)
                if len(pcs) == 1 and registers.link and pointer < address < pointer + _DEEPEST * PAGE:
                    # A function of RISC-V that calls none saves its caller's frame pointer alone, where others save ra.
                    address, following = frame.register(registers.link), address
                if not address:
                    break
                pcs.append(address)
                if following <= pointer:
                    break
                sp = pointer = following
        except BadAddressError:
            pass
        return pcs

    def locate(self, address: int, pid: int | None) -> Location | None:
        """Name an address of a process, None for the current one; None if no object holds it."""
        thread = self._userland.current if pid is None else None
        process = self._userland.process(pid) if pid is not None else thread.process if thread else None
        objects = self._last.get(pid or 0, ()) if process is None else self.of(process)
        found = next((one for one in objects if one.holds(address)), None)
        return None if found is None else found.locate(address)
