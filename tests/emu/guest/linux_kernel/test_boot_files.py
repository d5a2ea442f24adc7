"""What a kernel is given to boot: device trees, archives, the words of /init."""

import shutil
import struct
import subprocess

import pytest

from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.machine import initramfs
from emu.guest.linux_kernel.machine.console import Console
from emu.guest.linux_kernel.platforms.device_tree import cells, flatten, node
from emu.support import cpio


def properties(blob):
    """Read a flattened tree back: path of each property -> its bytes."""
    magic, _total, structure, strings = struct.unpack_from(">4I", blob)
    assert magic == 0xD00DFEED
    found, path, at = {}, [], structure
    while True:
        (token,) = struct.unpack_from(">I", blob, at)
        at += 4
        if token == 1:
            end = blob.index(b"\0", at)
            path.append(blob[at:end].decode())
            at = end + 4 - end % 4
        elif token == 3:
            size, name = struct.unpack_from(">II", blob, at)
            label = blob[strings + name : blob.index(b"\0", strings + name)].decode()
            found["/".join([*path[1:], label])] = blob[at + 8 : at + 8 + size]
            at += 8 + size + -size % 4
        elif token == 2:
            path.pop()
        else:
            assert token == 9
            return found


def test_a_tree_has_its_nodes_and_properties():
    tree = node(
        "", {"model": "m"}, node("cpu@0", {"reg": 0, "empty": True, "list": [1, "two"]}, node("x", {"r": cells(5)}))
    )
    assert properties(flatten(tree)) == {
        "model": b"m\0",
        "cpu@0/reg": bytes(4),
        "cpu@0/empty": b"",
        "cpu@0/list": b"\0\0\0\1two\0",
        "cpu@0/x/r": b"\0\0\0\0\0\0\0\5",
    }


def test_a_tree_says_what_memory_is_reserved():
    blob = flatten(node("", {}), reserved=[(0, 0x200000)])
    (at,) = struct.unpack_from(">I", blob, 16)
    assert struct.unpack_from(">4Q", blob, at) == (0, 0x200000, 0, 0)


@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio(1) is not installed")
def test_cpio_lists_an_archive():
    data = cpio.archive({"dir": cpio.directory(), "dir/file": cpio.regular(b"x" * 5), "link": cpio.link("dir/file")})
    listed = subprocess.run(["cpio", "-tv"], input=data, capture_output=True, check=True).stdout.decode()
    assert [line.split()[0] for line in listed.splitlines()] == ["drwxr-xr-x", "-rw-r--r--", "lrwxrwxrwx"]
    assert "link -> dir/file" in listed


def test_an_archive_is_aligned_and_ends_with_its_trailer():
    data = cpio.archive({"a": cpio.regular(b"12345")})
    assert data.startswith(b"070701")
    assert len(data) % 4 == 0
    assert b"TRAILER!!!" in data[-20:]


def test_a_root_gets_init_and_busybox_and_keeps_its_own_files(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").write_bytes(b"mine")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "passwd").write_bytes(b"me:x")
    archive = initramfs.of_root(tmp_path, b"the busybox")
    for part in (b"bin/tool\0", b"mine", b"me:x", b".busybox/busybox\0", b"the busybox", b"#!/.busybox/busybox sh"):
        assert part in archive
    assert b"root:x:0:0" not in archive


def test_a_root_that_is_not_a_directory_is_refused(tmp_path):
    with pytest.raises(KernelFileError, match="not a directory"):
        initramfs.of_root(tmp_path / "none", b"")


def test_a_root_that_is_too_big_is_refused(tmp_path):
    with (tmp_path / "big").open("wb") as file:
        file.truncate(initramfs.LARGEST + 1)
    with pytest.raises(KernelFileError, match="more than 128 MiB"):
        initramfs.of_root(tmp_path, b"")


class TestConsole:
    def setup_method(self):
        self.shown = bytearray()
        self.said = []
        self.console = Console(self.shown.extend, self.said.append)

    def test_words_between_marks_are_not_shown(self):
        self.console.send(b"before\x01rea")
        self.console.send(b"dy\x01after")
        assert (bytes(self.shown), self.said) == (b"beforeafter", ["ready"])

    def test_a_mark_of_a_programs_own_is_shown(self):
        text = b"\x01" + b"x" * 60
        self.console.send(text)
        assert (bytes(self.shown), self.said) == (text, [])

    def test_the_log_has_the_end(self):
        for number in range(5000):
            self.console.send(b"line %d\r\n" % number)
        assert self.console.last_lines.splitlines()[-1] == "line 4999"
        assert len(self.console.last_lines.splitlines()) == 25
