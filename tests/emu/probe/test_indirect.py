"""Indirect functions: the place of their choice, and the size of functions without a symbol."""

import re
import shutil
import subprocess

import pytest

from emu.elf.image import Image
from emu.elf.symbols import SymbolType
from emu.guest.kernel.boot import images
from emu.isa import ISAS
from emu.probe.indirect import _frame_size, function_size, resolved_words
from tests.emu.guest.linux.support import expected, zoo


@pytest.mark.parametrize("isa", ISAS)
def test_unwind_entries_tell_the_size_that_symbols_tell(isa):
    image = Image(images.linux(ISAS[isa], "libzoo.so"))
    sizes = [(one.size, _frame_size(image, one.value)) for one in image.functions if one.size]
    told = [(symbol, frame) for symbol, frame in sizes if frame]
    assert len(told) > len(sizes) // 2
    assert sum(symbol == frame for symbol, frame in told) > 0.97 * len(told)


@pytest.mark.parametrize("isa", ISAS)
def test_an_address_in_the_middle_of_a_function_has_no_size(isa):
    image = Image(images.linux(ISAS[isa], "zoo"))
    assert function_size(image, image.symbol("fib").value) == image.symbol("fib").size
    assert function_size(image, image.symbol("fib").value + 4) == 0
    assert function_size(image, 0) == 0


@pytest.mark.parametrize("isa", ISAS)
def test_the_words_of_resolvers_are_those_of_readelf(isa):
    if shutil.which("readelf") is None:
        pytest.skip("readelf (Debian: binutils) is not installed")
    path = images.linux(ISAS[isa], "zoo")
    text = subprocess.run(["readelf", "-rW", path], capture_output=True, text=True, check=True).stdout
    told = {
        (int(addend, 16), int(place, 16)) for place, addend in re.findall(r"(?m)^(\w+)\s.*IRELATIV\S*\s+(\w+)$", text)
    }
    image = Image(path)
    if image.isa.word == 4:  # the addend is where the choice will be
        places = re.findall(r"(?m)^(\w+)\s.*IRELATIV", text)
        told = {(int.from_bytes(image.read(int(place, 16), 4), "little"), int(place, 16)) for place in places}
    words = resolved_words(image)
    assert told.issuperset(words.items())
    assert {resolver for resolver, _ in told} == set(words)
    assert bool(told) is any(one.type is SymbolType.GNU_IFUNC for one in image.functions)


@pytest.mark.parametrize("isa", ISAS)
def test_a_probe_on_an_indirect_function_is_in_the_code_that_was_chosen(isa):
    ran = zoo(isa, "args", "pid$target::strlen:entry { @ = count(); }")
    assert ran.output == expected("args", isa)
    assert ran.fired >= 3
