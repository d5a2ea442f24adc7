"""What the pid provider does with functions that hold instructions which few decoders know, or none."""

import pytest

from emu.elf.symbols import Binding, SymbolType
from emu.elf.writer import ALLOC, EXECINSTR, EXECUTABLE, OutputSection, OutputSymbol, elf_file
from emu.isa import ISAS
from tests.support.command import run_trapline

BASE = 0x401000
ISA = ISAS["x86_64"]
# The traps that are not reached stand behind a jump.
UD1 = "4885ff 7505 670fb94002 55 4889e5 5d c3"  # test; jnz; ud1 2(%eax),%eax: clang's; push; mov; pop; ret
IFMA = "85ff 7406 c4e2f5b4c1 c3 31c0 c3"  # test; jz; vpmadd52luq; ret; xor; ret
UNKNOWN = "85ff 7406 0f04909090 c3 31c0 c3"
START = "bf00000000 e8{distance} b83c000000 31ff 0f05"  # edi = 0; call; exit(0)


def program(folder, name, function, argument=0):
    function = bytes.fromhex(function)
    start = BASE + len(function)
    distance = (BASE - (start + 10)).to_bytes(4, "little", signed=True).hex()
    begin = bytearray.fromhex(START.format(distance=distance))
    begin[1] = argument
    section = OutputSection(".text", ALLOC | EXECINSTR, function + bytes(begin), BASE)
    symbols = [
        OutputSymbol("f", BASE, len(function), SymbolType.FUNC, Binding.GLOBAL),
        OutputSymbol("_start", start, len(begin), SymbolType.FUNC, Binding.GLOBAL),
    ]
    path = folder / name
    path.write_bytes(elf_file(ISA, EXECUTABLE, [section], symbols, start))
    path.chmod(0o755)
    return path


def traced(path, probe):
    program_text = f"pid$target:{path.name}:f:{probe} {{ @[probename] = count(); }}"
    return run_trapline(["dtrace", "-q", "-n", program_text, "-c", str(path)])


@pytest.mark.parametrize(("function", "argument", "offsets"), [(UD1, 1, "0 3 a b e f"), (IFMA, 0, "0 2 a c")])
def test_an_instruction_that_capstone_does_not_know_takes_no_probe_away(tmp_path, function, argument, offsets):
    ran = traced(program(tmp_path, "known", function, argument), "")
    assert ran.returncode == 0, ran.stderr
    names = {line.split()[0] for line in ran.stdout.splitlines() if line}
    assert names == {"entry", "return", *offsets.split()}
    assert "no instruction" not in ran.stderr


@pytest.mark.parametrize("probe", ["", "return"])
def test_bytes_that_are_no_instruction_are_named_in_a_line(tmp_path, probe):
    ran = traced(program(tmp_path, "unknown", UNKNOWN), probe)
    said = [line for line in ran.stderr.splitlines() if "unknown`f+0x4: no instruction begins there" in line]
    assert len(said) == 1
    assert "no offset probes, and return probes only where a frame ends" in said[0]


def test_an_entry_needs_no_length(tmp_path):
    assert "no instruction" not in traced(program(tmp_path, "unknown", UNKNOWN), "entry").stderr
