"""Files of modules, and the types of modules, which follow those of the kernel."""

import lzma
import shutil
import struct
import subprocess

import pytest

from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.files.btf import Btf, Kind
from emu.guest.linux_kernel.files.module_files import files_in, with_dependencies
from tests.emu.guest.linux_kernel.test_kernel_files import btf

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def module(folder, name, info):
    """Compile a file with a section .modinfo."""
    source = folder / "module.s"
    lines = "".join(f'.asciz "{line}"\n' for line in info)
    source.write_text(f'.section .modinfo,"a"\n{lines}')
    subprocess.run(["gcc", "-c", str(source), "-o", str(folder / name)], check=True)
    source.unlink()


@needs_gcc
def test_the_modules_that_a_module_needs_precede_it(tmp_path):
    module(tmp_path, "nls-base.ko", ["license=GPL"])
    module(tmp_path, "crc.ko", ["depends="])
    module(tmp_path, "fs.ko", ["depends=nls_base,built_in", "softdep=pre: crc post: late"])
    packed = lzma.compress((tmp_path / "fs.ko").read_bytes())
    (tmp_path / "fs.ko").unlink()
    (tmp_path / "fs.ko.xz").write_bytes(packed)
    found = with_dependencies(["fs", "nls-base"], files_in(tmp_path))
    assert list(found) == ["nls_base", "crc", "fs"]
    assert all(content.startswith(b"\x7fELF") for content in found.values())
    with pytest.raises(KernelFileError, match="no module built_in is stored"):
        with_dependencies(["built_in"], files_in(tmp_path))


def test_a_file_that_is_no_module_is_an_error(tmp_path):
    (tmp_path / "bad.ko").write_bytes(b"text")
    with pytest.raises(KernelFileError, match=r"bad\.ko"):
        with_dependencies(["bad"], files_in(tmp_path))


def test_types_of_a_module_refer_to_those_of_its_kernel():
    kernel = Btf(btf())
    strings = b"\0mine\0"
    first = kernel.strings_size
    task = kernel.find("task", Kind.STRUCT)
    # typedef struct task mine; struct { mine a task; } task_t, by the kernel's string.
    name = kernel.offset_of("task_t")
    types = struct.pack("<III", first + 1, Kind.TYPEDEF << 24, task.number)
    types += struct.pack("<IIIIII", name, Kind.STRUCT << 24 | 1, 24, first + 1, len(kernel) + 1, 0)
    header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(strings))
    own = Btf(header + types + strings, base=kernel)
    assert len(own) == len(kernel) + 2
    assert own.resolved(own.find("mine", Kind.TYPEDEF).number).name == "task"
    assert own.offset("task_t", "mine.pid") == 16
    assert own.find("task_t", Kind.TYPEDEF) == kernel.find("task_t", Kind.TYPEDEF)
    assert own.find("nothing", Kind.STRUCT) is None
