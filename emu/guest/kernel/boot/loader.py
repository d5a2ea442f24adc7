"""The kernel guest's boot loader: puts kernel, symbols and initial file system into RAM.

Like FreeBSD's loader, it puts the kernel's symbol table after the kernel's text, where the kernel's
linker expects it, and passes addresses and sizes by the C calling convention.
"""

from __future__ import annotations

from typing import Final

from emu.elf.image import Image
from emu.elf.symbols import symbol_size
from emu.engine.engine import Engine
from emu.engine.errors import GuestCrashError
from emu.engine.memory.pages import PAGE
from emu.guest.kernel import krtld
from emu.probe.arguments import pass_arguments

# The end of the kernel's first stack, if its arguments are passed on the stack.
_STACK: Final = 0x1000
_STACK_WORDS: Final = 4
_SYMBOL_ALIGNMENT: Final = 64


def load(engine: Engine, image: Image, archive: bytes) -> int:
    """Load a kernel and its initial file system, and set the CPU to its entry point.

    Returns the end of the kernel's text and of the symbols after it.  Raises `GuestCrashError` if
    RAM is too small.
    """
    ram = engine.memory.ram
    end = _load_segments(engine, image)
    _cut_out_probe_calls(engine, image)
    start = (engine.memory.size - len(archive)) & -PAGE
    if start < end:
        raise GuestCrashError(f"the initial file system of {len(archive) >> 20} MiB does not fit into RAM", 0)
    ram[start : start + len(archive)] = archive
    text_end = _load_symbols(engine, image)
    engine.write_register(engine.isa.registers.sp, _STACK - _STACK_WORDS * engine.isa.word)
    pass_arguments(engine, (engine.memory.size, start, len(archive)))
    engine.pc = image.entry
    return text_end


def _load_segments(engine: Engine, image: Image) -> int:
    """Load an image at its physical addresses; return its end."""
    memory, end = engine.memory, 0
    for segment in image.segments:
        end = max(end, segment.paddr + segment.memsz)
        if end > memory.size:
            raise GuestCrashError(f"the kernel image ends at {end:#x}, past the {memory.size >> 20} MiB of RAM", 0)
        memory.ram[segment.paddr : segment.paddr + len(segment.data)] = segment.data
    return end


def _cut_out_probe_calls(engine: Engine, image: Image) -> None:
    """Replace the calls that are probes of illumos' SDT by nops, as its linker does."""
    for call in krtld.probe_calls(image):
        physical = call.offset - 1 - engine.isa.kernel_base
        engine.memory.ram[physical : physical + len(krtld.NOPS)] = krtld.NOPS


def _load_symbols(engine: Engine, image: Image) -> int:
    """Put the kernel's symbol table after its text, and pass its address to the kernel.

    Returns the end of the table.
    """
    ram, word, text = engine.memory.ram, engine.isa.word, image.segments[0]
    end = text.vaddr + text.memsz
    symbols, strings = image.section(".symtab"), image.section(".strtab")
    if symbols is None or strings is None:
        return end  # stripped: this kernel cannot load modules
    table = end + -end % _SYMBOL_ALIGNMENT
    names = table + len(symbols.data)
    ram[table - text.vaddr + text.paddr :][: len(symbols.data)] = symbols.data
    ram[names - text.vaddr + text.paddr :][: len(strings.data)] = strings.data
    values = {"ksymtab": table, "ksymtab_count": len(symbols.data) // symbol_size(word), "kstrtab": names}
    for name, value in values.items():
        physical = image.symbol(name).value - text.vaddr + text.paddr
        ram[physical : physical + word] = value.to_bytes(word, "little")
    return names + len(strings.data)
