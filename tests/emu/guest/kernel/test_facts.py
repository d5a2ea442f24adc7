"""Facts that are both in the teaching kernel's sources and in the emulator: they are the same."""

import re
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from emu.elf.image import Image
from emu.guest.kernel.boot import images
from emu.isa import ISAS

isas = pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
KERNEL = Path("testbins/kernel")
# What FreeBSD calls a field of the trap frame that D and the emulator name by the register in it.
NAMES = {"elr": "pc", "sepc": "pc", "x29": "fp", "pad": "", "padding": ""}


def declared_gates(*, several=True):
    """Return the names in the list of gates that the kernel for several CPUs, or for one, is built from."""
    text = (KERNEL / "sys/gates.def").read_text()
    if not several:
        text = re.sub(r"^#ifdef SMP$.*?^#endif$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^GATE\([^,]*, (\w+),", text, re.MULTILINE)


def frame_fields(isa):
    """Return the fields of the kernel's `struct trapframe` by its debugging information, arrays spread out."""
    with (images.built(isa) / "kernel").open("rb") as file:
        for unit in ELFFile(file).get_dwarf_info().iter_CUs():
            for entry in unit.iter_DIEs():
                is_frame = entry.tag == "DW_TAG_structure_type" and "DW_AT_byte_size" in entry.attributes
                if is_frame and entry.attributes["DW_AT_name"].value == b"trapframe":
                    return entry.attributes["DW_AT_byte_size"].value, [
                        name for field in entry.iter_children() for name in spread(field)
                    ]
    raise AssertionError(isa.name)


def spread(field):
    """Return the names of a field's words, an array's with their index."""
    name = field.attributes["DW_AT_name"].value.decode().removeprefix("tf_")
    kind = field.get_DIE_from_attribute("DW_AT_type")
    if kind.tag != "DW_TAG_array_type":
        return [name]
    (bound,) = kind.iter_children()
    return [f"{name}{index}" for index in range(bound.attributes["DW_AT_upper_bound"].value + 1)]


@isas
def test_the_emulator_and_the_kernel_lay_the_trap_frame_out_alike(isa):
    # Not read from the image when a guest starts: guests without this kernel ask the ISA which registers a trap frame
    # holds, too, and so do kernels without debugging information (kernels/sdt-YEAR).
    size, fields = frame_fields(isa)
    assert [NAMES.get(name, name) for name in fields] == list(isa.traps.frame)
    alignment = 16
    assert 0 <= size - isa.word * len(isa.traps.frame) < alignment


@isas
def test_a_kernel_has_every_gate_and_each_is_a_lone_return(isa):
    """The kernel for one CPU lacks the gates below `#ifdef SMP`, and only those."""
    one, several = (Image(images.built(isa) / name) for name in ("kernel", "kernels/smp"))
    for image, names in ((one, declared_gates(several=False)), (several, declared_gates())):
        sizes = {image.symbol(name).size for name in names}
        assert len(sizes) == 1
        assert sizes < {1, 2, 4}
    others = {*declared_gates()} - {*declared_gates(several=False)}
    assert others
    assert not others & {symbol.name for symbol in one.symbols}


def test_the_readme_says_what_every_gate_does():
    rows = [line for line in (KERNEL / "README.md").read_text().splitlines() if line.startswith("| `")]
    told = {name for row in rows for name in re.findall(r"(\w+)\(", row.split("|")[1])}
    assert set(declared_gates()) <= told
