"""A file that many machines have is read once, and again when it has changed."""

from __future__ import annotations

import pytest

from emu.elf.file import ElfError
from emu.elf.image import image_of_content, image_of_file
from emu.isa import ISAS
from tests.emu.elf_file import FUNC, GLOBAL, TEXT, ElfFile
from trapline.consumer.program.library import files

X86_64, RISCV64 = ISAS["x86_64"], ISAS["riscv64"]


def a_file(*names: str) -> bytes:
    symbols = [(name, 0x40_0000, 1, FUNC, GLOBAL, TEXT) for name in names]
    return ElfFile(code=b"\xc3", symbols=symbols).bytes()


def test_a_file_that_changes_is_another_image(tmp_path):
    path = tmp_path / "program"
    path.write_bytes(a_file("before"))
    first = image_of_file(path, X86_64)
    assert image_of_file(path, X86_64) is first
    path.unlink()
    path.write_bytes(a_file("after", "it"))
    assert image_of_file(path, X86_64).defines("after")
    assert first.defines("before")


def test_a_content_has_one_image_for_each_name():
    first = image_of_content("one", a_file("f"))
    assert image_of_content("one", a_file("f")) is first
    assert str(image_of_content("another", a_file("f")).path) == "another"


def test_a_missing_file_and_one_of_another_isa_are_refused(tmp_path):
    path = tmp_path / "program"
    with pytest.raises(ElfError, match="no such file"):
        image_of_file(path, X86_64)
    path.write_bytes(a_file("f"))
    with pytest.raises(ElfError, match="made for x86_64, not riscv64"):
        image_of_file(path, RISCV64)


def test_a_library_that_changes_is_read_again(tmp_path):
    path = tmp_path / "mine.d"
    path.write_text("inline int one = 1;\n")
    (first,) = files([tmp_path])
    assert files([tmp_path]) == [first]
    path.write_text("inline int another = 1;\n")
    assert files([tmp_path])[0].names == {"another"}
