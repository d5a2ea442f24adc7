"""Source lines of the kernel guest, whose build keeps DWARF."""

import io
import shutil
import subprocess

import pytest
from elftools.elf.elffile import ELFFile

from emu.elf import Image
from emu.guest.kernel import images
from emu.isa import ISAS
from emu.source_lines import SourceLines
from tests.support.command import run_trapline

_PROGRAM = """\
#include <stdio.h>
__attribute__((noinline)) int inner(int n)
{
    puts("");
    return n;
}
int main(void)
{
    return inner(0);
}
"""


@pytest.mark.parametrize("isa", ISAS)
def test_a_function_is_in_its_source_file(isa):
    image = Image(images.built(ISAS[isa]) / "kernel")
    symbol = image.symbol("sys_read")
    places = [image.source_lines.at(symbol.value + offset) for offset in (0, symbol.size - 4)]
    assert None not in places
    assert len({place.file for place in places}) == 1
    assert places[0].file.endswith(".c")
    assert places[0].line > 0
    assert image.source_lines.at(0) is None


def test_the_lines_are_those_of_addr2line():
    tool = shutil.which("addr2line")
    if tool is None:
        pytest.skip("addr2line (Debian: binutils) is not installed")
    image = Image(images.built(ISAS["x86_64"]) / "kernel")
    functions = [one for one in image.functions if one.size][::40]
    addresses = [one.value for one in functions]
    told = subprocess.run(
        [tool, "-e", str(image.path), *map(hex, addresses)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    wanted = [line.split(" ")[0].rpartition("/")[2] for line in told]
    found = [str(image.source_lines.at(address) or "??:0") for address in addresses]
    equal = sum(one == other for one, other in zip(wanted, found, strict=True) if not other.startswith("?"))
    known = sum(not other.startswith("?") for other in wanted)
    assert equal == known > 5


@pytest.mark.parametrize("place", range(0, 4000, 371))
def test_damaged_tables_tell_nothing_or_something(place):
    content = bytearray((images.built(ISAS["x86_64"]) / "kernel").read_bytes())
    section = ELFFile(io.BytesIO(bytes(content))).get_section_by_name(".debug_line")
    at = section["sh_offset"] + place
    content[at : at + 9] = b"\xff" * 9
    SourceLines(ELFFile(io.BytesIO(bytes(content)))).at(0xFFFF_FFFF_8000_0000)


def test_frames_of_a_program_name_their_lines(tmp_path):
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed")
    (tmp_path / "t.c").write_text(_PROGRAM)
    built = subprocess.run([compiler, "-g", "-O0", "-static", "-o", tmp_path / "t", tmp_path / "t.c"], check=False)
    program = Image(tmp_path / "t") if built.returncode == 0 else None
    if program is None or program.isa is not ISAS["x86_64"]:
        pytest.skip("gcc makes no static x86-64 program")
    result = run_trapline(
        ["dtrace", "-x", "lines", "-qn", "pid$target::inner:entry { ustack(); }", "-c", str(tmp_path / "t")]
    )
    assert result.returncode == 0, result.stderr
    assert "t`inner (t.c:3)\n" in result.stdout
    assert "(t.c:9)\n" in result.stdout
