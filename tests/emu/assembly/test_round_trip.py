"""Random encodings: the assembler accepts the disassembler's text, and makes the same bytes."""

import random

import pytest

from emu.assembly import AssemblyError, assemble
from emu.isa import ISAS, disassembly
from tests.support.some import some

pytest.importorskip("keystone")
ADDRESS = 0x1000
COUNT = {"x86_64": 500, "i386": 500, "aarch64": 700, "riscv64": 1500}
# At least this part of the drawn encodings is assembled.  Half of AArch64's encodings are SVE, SME and their like.
ASSEMBLED = {"x86_64": 0.97, "i386": 0.95, "aarch64": 0.75, "riscv64": 0.99}
# Other names of the same instruction, or of the same operand.
SAME = {"sal ": "shl ", "ds:": "", "ss:": "", "es:": "", "0x": "", "-": ""}


def drawn(isa, count):
    """Encodings that decode: (bytes, text)."""
    draw = random.Random(7)  # noqa: S311
    while count:
        code = draw.randbytes(4 if isa.instruction_alignment > 1 else 16)
        if isa.instruction_alignment == 2 and draw.random() < 0.6:
            code = bytes((code[0] | 3, *code[1:]))
        told = disassembly.first(isa, code, ADDRESS)
        if told is not None and told.text not in {disassembly.NO_INSTRUCTION, disassembly.NO_NAME}:
            count -= 1
            yield code[: told.size], told.text


@pytest.mark.parametrize("name", ISAS)
def test_what_is_assembled_from_a_disassembly_disassembles_to_it(name, monkeypatch):
    # A process for each of a hundred instructions takes long; test_outside.py tries llvm-mc and GNU as.
    monkeypatch.setattr("emu.assembly.outside.assembled", lambda _outside, _statement: None)
    isa = ISAS[name]
    refused = []
    for code, text in drawn(isa, COUNT[name]):
        try:
            (one,) = assemble(isa, text, ADDRESS)
        except AssemblyError as error:
            refused.append(str(error))
            continue
        if one.text != text:
            # Then it is the same by other names; numbers of a byte are signed or not.
            assert one.text.split()[0] in {text.split()[0], "shl", "cmp", "xchg"}, (code.hex(), text, one)
            assert set(names(one.text)) == set(names(text)), (code.hex(), text, one)
    assert len(refused) <= (1 - ASSEMBLED[name]) * COUNT[name], refused[:20]


def names(text):
    for old, new in SAME.items():
        text = text.replace(old, new)
    return [word for word in text.replace("[", " ").replace("]", " ").replace(",", " ").split()[1:] if word.isalpha()]


def test_every_encoding_of_riscv_but_hints_is_assembled_to_its_own_bytes():
    isa = ISAS["riscv64"]
    for code, text in some(drawn(isa, 4000)):
        if text.startswith("c.") and text.endswith(", 0"):
            continue  # a hint, which has no name in the specification
        (one,) = assemble(isa, text, ADDRESS)
        assert one.code == code or one.text == text, (code.hex(), text, one)
