"""Inlined functions, against addr2line -i for every instruction of a program, and in a stack."""

from __future__ import annotations

import io
import shutil
import subprocess

import pytest
from elftools.elf.elffile import ELFFile

from emu.elf.file import ElfFile
from emu.elf.image import Image
from emu.elf.source.inlined import Source
from emu.elf.source.units import Units
from emu.isa import ISAS
from tests.support.command import run_trapline
from trapline.lab.objects.build import BuildError, compiler

_PROGRAM = """\
typedef struct node { struct node *next; int value; } node;
static node pool[16];
__attribute__((noinline)) int leaf(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
#define INLINE static inline __attribute__((always_inline))
INLINE int one(int n)
{
    return leaf(n) + 2;
}
INLINE int two(int n)
{
    int t = 0;
    for (int i = 0; i < n; i++)
        t += one(i);
    return t;
}
INLINE int three(node *list)
{
    int t = 0;
    while (list) {
        if (list->value > 3)
            t += two(list->value);
        list = list->next;
    }
    return t;
}
__attribute__((noinline)) int outer(int n)
{
    node *list = 0;
    for (int i = 0; i < n; i++) {
        pool[i].next = list; pool[i].value = i;
        list = &pool[i];
    }
    return three(list) +
        two(n);
}
void _start(void)
{
    outer(6);
    for (;;) __asm__ volatile("");
}
"""
_FLAGS = ("-g", "-ffreestanding", "-nostdlib", "-static", "-Wl,-e,_start", "-fno-stack-protector")
_STACK = ["leaf (t.c:3)", "one [inlined] (t.c:7)", "two [inlined] (t.c:13)", "three [inlined] (t.c:21)", "outer"]


@pytest.fixture(scope="module", params=list(ISAS))
def built(request, tmp_path_factory):
    """The program, built with -O2."""
    folder = tmp_path_factory.mktemp("inlined")
    (folder / "t.c").write_text(_PROGRAM)
    try:
        command = (*compiler(ISAS[request.param]), *_FLAGS, *ISAS[request.param].elf.toolchain.options)
    except BuildError as error:
        pytest.skip(str(error))
    made = subprocess.run([*command, "-O2", "-o", "t", "t.c"], cwd=folder, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return Image(folder / "t")


def _told(path, addresses):
    """Return what addr2line says of each address: (function, file:line), the innermost first."""
    tool = shutil.which("addr2line")
    if tool is None:
        pytest.skip("addr2line (Debian: binutils) is not installed")
    words = [tool, "-a", "-i", "-f", "-e", str(path), *map(hex, addresses)]
    found = {}
    for line in subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines():
        if line.startswith("0x"):
            frames = found.setdefault(int(line, 16), [])
        else:
            frames.append(line.split(" (")[0].rpartition("/")[2])
    return {address: list(zip(each[::2], each[1::2], strict=True)) for address, each in found.items()}


def test_every_instruction_has_the_functions_and_lines_that_addr2line_tells(built):
    addresses = [one.value + offset for one in built.functions for offset in range(0, one.size, 2)]
    told = _told(built.path, addresses)
    for address in addresses:
        *inlined, (_, place) = told[address]
        frames = built.source.frames(address)
        assert [(frame.function, str(frame.line)) for frame in frames] == [*inlined, ("", place)], hex(address)
    assert max(map(len, told.values())) >= 4


def test_a_stack_shows_the_functions_that_have_no_frame(built):
    path = built.path.parent / ".." / built.path.parent.name / built.path.name
    words = ["dtrace", "-x", "lines", "-qn", "pid$target::leaf:entry { ustack(); exit(0); }", "-c", str(path)]
    result = run_trapline(words)
    assert result.returncode == 0, result.stderr
    shown = [line.strip().partition("`")[2] for line in result.stdout.splitlines() if "`" in line]
    assert [line.partition("+")[0] if "+" in line else line for line in shown[:5]] == _STACK
    assert shown[4].endswith(" (t.c:33)")


@pytest.mark.parametrize("section", [".debug_info", ".debug_abbrev", ".debug_rnglists"])
def test_damaged_entries_end_and_raise_nothing(built, section):
    content = built.path.read_bytes()
    start = ELFFile(io.BytesIO(content)).get_section_by_name(section)
    address = built.symbol("outer").value + 60
    for place in range(0, start["sh_size"], 1 + start["sh_size"] // 4):
        for byte in (0, 0xFF):
            damaged = bytearray(content)
            damaged[start["sh_offset"] + place] = byte
            Source(Units(ElfFile("damaged", bytes(damaged)))).frames(address)
