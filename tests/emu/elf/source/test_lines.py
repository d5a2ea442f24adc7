"""Source lines of the kernel guest, whose build keeps DWARF."""

import io
import re
import shutil
import subprocess

import pytest
from elftools.elf.elffile import ELFFile

from emu.elf.file import ElfFile
from emu.elf.image import Image
from emu.elf.source.lines import SourceLines
from emu.elf.source.units import Units
from emu.guest.kernel.boot import images
from emu.isa import ISAS
from tests.support.command import run_trapline


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
    image = Image(images.built(ISAS["x86_64"]) / "kernel")
    addresses = [one.value for one in image.functions if one.size][::40]
    wanted = _addr2line(image.path, addresses)
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
    SourceLines(Units(ElfFile("damaged", bytes(content)))).at(0xFFFF_FFFF_8000_0000)


def _addr2line(path, addresses):
    tool = shutil.which("addr2line")
    if tool is None:
        pytest.skip("addr2line (Debian: binutils) is not installed")
    words = [tool, "-e", str(path), *map(hex, addresses)]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split(" ")[0].rpartition("/")[2] for line in told]


def test_a_stack_of_the_kernel_names_the_lines_of_its_calls():
    """And one line names the files that have none."""
    path = images.built(ISAS["riscv64"]) / "kernel"
    program = "syscall::write:entry { stack(); ustack(); exit(0); }"
    words = ["dtrace", "--isa", "riscv64", "-x", "lines", "-qn", program, "-c", "echo"]
    result = run_trapline(words)
    assert result.returncode == 0, result.stderr
    frames = re.findall(r"kernel`(\w+)\+0x(\w+) \((.*)\)\n", result.stdout)
    assert len(frames) > 2
    image = Image(path)
    calls = [image.symbol(name).value + int(offset, 16) - 1 for name, offset, _ in frames]
    assert [line for _, _, line in frames] == _addr2line(path, calls)
    (told,) = result.stderr.splitlines()
    assert re.fullmatch(r"dtrace: -x lines: no source lines of \S+, libc\.so\.7: no DWARF in it, .*", told)
