"""The refusals of a Linux kernel's uprobes, for every different instruction of some programs.

The kernel decides by the bytes of an instruction, and refuses an unaligned place.  So each sequence
of bytes is asked for once: it is put into a slot of a file, which the stopped kernel opens and
maps, and `uprobe_register()` is called for its offset.  A slot is aligned for every ISA and crosses
no page.

Source: Linux 6.12 kernel/events/uprobes.c (prepare_uprobe), arch/*/kernel/*uprobes.c
(arch_uprobe_analyze_insn).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from emu.elf.image import Image
from emu.guest.base import GuestError
from emu.guest.linux_kernel.kernel_calls import KernelCallError, KernelCalls, error_name, error_of
from emu.isa.base import Isa
from providers import fasttrap, uprobes
from trapline.lab.oracle.refusals import Verdicts, count_verdicts, uprobe_verdicts
from trapline.machine.linux_kernel_machine import LinuxKernelOptions, start

SLOT: Final = 16
_READ_EXECUTE, _PRIVATE = 5, 2
_POINTER: Final = 8


def different(isa: Isa, images: Iterable[Image]) -> list[bytes]:
    """Return the different instructions in the code of some programs, sorted."""
    port, longest = fasttrap.PORTS[isa.name], uprobes.PORTS[isa.name].longest
    found: set[bytes] = set()
    for image in images:
        for section in image.code_sections:
            ends = (*port.boundaries(section.data), len(section.data))
            found.update(section.data[at:end] for at, end in pairwise(ends) if end - at <= longest)
    return sorted(found)


class SlotFile(NamedTuple):
    """A file in the guest whose every `SLOT` bytes begin with an instruction."""

    root: Path | None
    """The directory that the guest starts with; None: busybox alone."""
    name: str
    """Its path in the guest, without the first slash."""
    data: bytes


def written(root: Path, instructions: Iterable[bytes]) -> SlotFile:
    """Write some instructions into a file of a new root directory; return the file."""
    root.mkdir(parents=True, exist_ok=True)
    made = SlotFile(root, "instructions", b"".join(one.ljust(SLOT, b"\0") for one in instructions))
    (root / made.name).write_bytes(made.data)
    return made


def ask(isa: Isa, slotted: SlotFile, slots: range) -> list[Verdicts]:
    """Ask a kernel about some slots of a file; return what both say, the most frequent first.

    Raises `emu.guest.linux_kernel.errors.KernelFileError`, and `emu.guest.base.GuestError`.
    """
    root, path, data = slotted
    traced = start(LinuxKernelOptions(isa=isa, commands=("ls /",), root=root))
    traced.programs.run_to_program(traced.target)
    guest = traced.guest
    calls = guest.calls
    calls.here()

    def places() -> Iterator[tuple[int, int, bytes]]:
        for place in (slot * SLOT for slot in slots):
            yield place, place, data[place : place + SLOT]

    try:
        name = guest.scratch.start
        guest.store(name, f"/{path}\0".encode())
        file = _called(calls, "filp_open", name, 0, 0)
        _called(calls, "vm_mmap", file, 0, len(data), _READ_EXECUTE, _PRIVATE, 0)
        inode = guest.engine.load(file + guest.facts.btf.offset("file", "f_inode"), _POINTER)
        return count_verdicts(uprobe_verdicts(guest, calls, inode, path, places()))
    except KernelCallError as error:
        raise GuestError(str(error)) from None


def _called(calls: KernelCalls, function: str, *arguments: int) -> int:
    """Call a function of the kernel.  Raises `KernelCallError` if it returns an error, too."""
    result = calls.call(function, *arguments)
    number = error_of(result)
    if number:
        raise KernelCallError(f"{function}() of the kernel returns {error_name(number)}")
    return result
