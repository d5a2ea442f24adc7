"""The root is a jail: no program can read or change files of the host outside it."""

import pytest

from emu.guest.linux.errno import LinuxError
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.inode import Symlink
from emu.guest.linux.fs.namei import path_of, walk
from emu.guest.linux.fs.regular import RegularFile


@pytest.fixture
def outside(tmp_path):
    (tmp_path / "secret").write_text("secret")
    root = tmp_path / "root"
    (root / "a/b").mkdir(parents=True)
    (root / "a/file").write_text("inside")
    (root / "up").symlink_to("../secret")
    (root / "absolute").symlink_to(tmp_path / "secret")
    (root / "a/link").symlink_to("/a/file")
    (root / "loop").symlink_to("loop")
    (root / "parent").symlink_to("..")
    return tmp_path


@pytest.fixture
def root(outside):
    return Directory(host=outside / "root")


@pytest.mark.parametrize(
    "path", ["../secret", "/../../secret", "a/../../secret", "up", "absolute", "parent/secret", "a/b/../../../secret"]
)
def test_no_path_leads_out(root, path):
    with pytest.raises(LinuxError, match="ENOENT"):
        walk(root, root, path).found()


def test_dots_at_the_root_stay_there(root):
    assert walk(root, root, "/../..").found() is root
    assert walk(root, root, "parent").found() is root


def test_an_absolute_link_is_followed_from_the_guests_root(root):
    assert walk(root, root, "a/link").found() is walk(root, root, "/a/file").found()


def test_a_loop_of_links_ends(root):
    with pytest.raises(LinuxError, match="ELOOP"):
        walk(root, root, "loop").found()


def test_a_link_at_the_end_is_what_is_asked_for_or_followed(root):
    assert isinstance(walk(root, root, "a/link", follow=False).found(), Symlink)
    assert isinstance(walk(root, root, "a/link").found(), RegularFile)


def test_what_the_guest_writes_stays_in_the_guest(root, outside):
    file = walk(root, root, "a/file").found()
    file.write(0, b"OUT")
    file.truncate(4)
    assert file.read(0, 100) == b"OUTi"
    dentry = walk(root, root, "a/new")
    dentry.directory.add(dentry.name, RegularFile(0o644, content=b"x"))
    walk(root, root, "a").found().remove("file")
    assert (outside / "root/a/file").read_text() == "inside"
    assert not (outside / "root/a/new").exists()


def test_a_file_that_becomes_a_link_on_the_host_is_not_followed(root, outside):
    file = walk(root, root, "a/file").found()
    (outside / "root/a/file").unlink()
    (outside / "root/a/file").symlink_to(outside / "secret")
    with pytest.raises(LinuxError, match="EIO"):
        file.read(0, 10)


def test_a_path_is_reported_from_the_root(root):
    dentry = walk(root, root, "a/b")
    assert path_of(root, dentry.directory, dentry.name) == "/a/b"
    assert path_of(root, dentry.found()) == "/a/b"


@pytest.mark.parametrize("path", ["/proc/self/root/..", "/proc/self/cwd" + 50 * "/..", "/proc/1/../../.."])
def test_proc_leads_nowhere_else(path):
    from emu.guest.kernel.boot import images
    from emu.isa import X86_64
    from tests.emu.guest.linux.support import start

    machine, _ = start("x86_64", [images.linux(X86_64, "zoo"), "recursion"])
    kernel = machine.guest.kernel
    try:
        found = walk(kernel.root, kernel.root, path).found()
    except LinuxError:
        return
    assert found is kernel.root
