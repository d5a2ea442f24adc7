"""The ELF files that processes have mapped: which, where, and the names in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from emu.displaced.frame import Frame
from emu.elf.file import ElfError, ElfKind
from emu.elf.image import Image
from emu.elf.source.inlined import SourceFrame
from emu.elf.symbols import Symbol
from emu.engine.memory.access import Access
from emu.guest import processes
from emu.guest.base import Location
from emu.guest.linux.fs.regular import RegularFile
from emu.guest.linux.mm.address_space import Area
from emu.guest.linux.process.process import LinuxObserver, own
from emu.guest.objects import LoadedObject, load_bias
from emu.guest.stack_walker import Memory, StackWalker
from emu.isa.base import Isa
from emu.probe.indirect import function_size, resolved_words
from emu.support.words import BadAddressError

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel
    from emu.guest.linux.process.process import Process

_MAGIC = b"\x7fELF"

# A file may be a hole of terabytes that costs the guest nothing: an ELF file is read whole, so its holes may not be
# larger than what it holds, but for this many bytes.
_SPARE_HOLES = 16 << 20


class Objects(LinuxObserver):
    """Knows the objects of every process, also of those that have ended."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._images: dict[RegularFile, Image | None] = {}
        self._choices: dict[RegularFile, Mapping[int, int]] = {}
        self._last: dict[int, tuple[LoadedObject, ...]] = {}
        self.stacks = StackWalker(kernel.isa, Memory(kernel.read, self._object_here))
        kernel.observers.append(self)

    # -- files

    def image(self, file: RegularFile, path: str) -> Image | None:
        """Return a file as ELF, None if it is not one that can be used."""
        if file not in self._images:
            try:
                self._images[file] = image_of(file, path)
            except ElfError:
                self._images[file] = None
        return self._images[file]

    @staticmethod
    def refusal(file: RegularFile, isa: Isa) -> str | None:
        """Return why an ISA cannot run a file, without the file's name; None if it can."""
        try:
            image = image_of(file, "program", isa)
            _ = image.segments, image.interpreter  # are they in the file?
        except ElfError as error:
            return str(error).removeprefix("program: ")
        return None

    @staticmethod
    def interpreter(file: RegularFile) -> str | None:
        """Return the interpreter that a program asks for."""
        try:
            return image_of(file, "program").interpreter
        except ElfError:
            return None

    # -- processes

    def of(self, process: processes.Process) -> tuple[LoadedObject, ...]:
        """Return the objects of a process: the program first, then by address."""
        found: dict[tuple[object, int], LoadedObject] = {}
        for area in own(process).space.areas:
            loaded = self.loaded(process, area)
            if loaded is not None:
                found.setdefault((loaded.file, loaded.bias), loaded)
        return tuple(sorted(found.values(), key=lambda one: (one.file is not process.executable, one.bias)))

    def loaded(self, process: processes.Process, area: processes.Area) -> LoadedObject | None:
        """Return the object whose code an area is, None if it is none's."""
        if not isinstance(area, Area) or not isinstance(area.backing, RegularFile) or Access.EXECUTE not in area.access:
            return None
        file, areas = area.backing, own(process).space.areas
        image = self.image(file, area.name)
        if image is None or image.kind is ElfKind.RELOCATABLE:
            return None
        bias = load_bias(image, area, lambda: [one for one in areas if one.backing is file])
        return None if bias is None else LoadedObject(area.name, image, bias, file)

    def at(self, process: processes.Process, address: int) -> LoadedObject | None:
        """Return the object that holds an address of a process."""
        area = own(process).space.area_at(address)
        if area is None:
            return None
        loaded = self.loaded(process, area)
        if loaded is not None:
            return loaded
        return next((one for one in self.of(process) if one.holds(address)), None)

    def before_exec(self, process: Process) -> None:
        """Keep what a process had."""
        self._last[process.pid] = self.of(process)

    def exited(self, process: Process) -> None:
        """Keep what a process had: a trace may be printed after its end."""
        self._last[process.pid] = self.of(process)

    # -- names

    def locate(self, address: int, pid: int | None) -> Location | None:
        """Name an address of a process, None for the current one; None if no object holds it."""
        found = self._holder(address, pid)
        return found.locate(address) if found is not None else None

    def source(self, address: int, pid: int | None) -> Sequence[SourceFrame]:
        """Return the functions and lines of an instruction of a process; empty: not known."""
        found = self._holder(address, pid)
        return () if found is None else found.source(address)

    def _holder(self, address: int, pid: int | None) -> LoadedObject | None:
        """Return the object that holds an address of a process, also of one that has ended."""
        process = self._kernel.current.process if pid is None and self._kernel.current else None
        if pid is not None:
            process = self._kernel.processes.get(pid)
        if process is not None and process.alive:
            return self.at(process, address)
        return next((one for one in self._last.get(pid or 0, ()) if one.holds(address)), None)

    def chosen(self, process: processes.Process, loaded: LoadedObject, symbol: Symbol) -> Symbol | None:
        """Return what the resolver of an indirect function has chosen, under its name.

        None: nothing, or unknown.
        """
        assert isinstance(loaded.file, RegularFile)
        if loaded.file not in self._choices:
            self._choices[loaded.file] = resolved_words(loaded.image)
        word = self._choices[loaded.file].get(symbol.value)
        if word is None:
            return None
        try:
            content = own(process).space.peek(word + loaded.bias, self._kernel.isa.word)
        except BadAddressError:
            return None
        value = int.from_bytes(content, "little") - loaded.bias
        size = function_size(loaded.image, value)
        return symbol._replace(value=value, size=size) if size else None

    # -- stacks

    def stack(self, frame: Frame) -> list[int]:
        """Return the pcs of the current thread's stack, innermost first."""
        return self.stacks.pcs(frame)

    def _object_here(self, address: int) -> LoadedObject | None:
        current = self._kernel.current
        return self.at(current.process, address) if current is not None else None


def image_of(file: RegularFile, path: str, isa: Isa | None = None) -> Image:
    """Read a file of the guest as ELF.  Raises `ElfError`: not ELF, or nearly all of it is a hole."""
    if file.read(0, len(_MAGIC)) != _MAGIC:
        return Image(path, content=file.read(0, len(_MAGIC)), isa=isa)  # says what is wrong with it
    if file.size > 2 * file.allocated + _SPARE_HOLES:
        raise ElfError(f"{path}: nearly all of the file is a hole")
    return Image(path, content=file.read(0, file.size), isa=isa)
