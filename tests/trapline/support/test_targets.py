"""TARGET means the same to every command that takes one; a wrong word is one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.elf.image import Image
from emu.isa import ISAS
from tests.support.command import run_trapline
from trapline.support.own_files import TargetError
from trapline.support.targets import default_provider, find_file, find_files, find_in

ROOT = Path(__file__).parents[3]
BUILT = ROOT / "testbins" / "built"


@pytest.fixture
def root(tmp_path):
    """Return a root directory with a program, a library, and a link from /lib to /usr/lib as Debian has it."""
    folder = tmp_path / "usr" / "lib" / "x86_64-linux-gnu"
    folder.mkdir(parents=True)
    (tmp_path / "lib").symlink_to("/usr/lib")
    (tmp_path / "usr" / "bin").mkdir()
    (tmp_path / "usr" / "bin" / "prog").write_bytes((BUILT / "x86_64" / "linux" / "tiny").read_bytes())
    (folder / "libzoo.so.1").write_bytes((BUILT / "x86_64" / "linux" / "libzoo.so").read_bytes())
    (folder / "libzoo.so").write_text("GROUP ( libzoo.so.1 )\n")  # for the linker
    return tmp_path


@pytest.mark.parametrize("isa", ISAS)
def test_the_packages_own_files_are_found_by_name_on_every_isa(isa):
    for name in ("kernel", "tiny", "ls"):
        path = find_file(f"testbins:{name}", ISAS[isa])
        assert path.name == name
        assert Image(path).isa is ISAS[isa]
    assert default_provider(Image(find_file("testbins:kernel", ISAS[isa]))) == "fbt"
    assert default_provider(Image(find_file("testbins:tiny", ISAS[isa]))) == "pid"
    user = find_files("testbins:user", ISAS[isa])
    assert len(user) > 20
    # Some of the guest's programs are scripts, which have no instructions.
    assert all(Image(path).isa is ISAS[isa] for path in user)


@pytest.mark.parametrize("name", ["libzoo", "libzoo.so.1", "/lib/x86_64-linux-gnu/libzoo.so.1"])
def test_a_library_of_a_root_is_found_by_its_name_its_file_and_its_path(root, name):
    expected = root / "usr" / "lib" / "x86_64-linux-gnu" / "libzoo.so.1"
    assert find_file(name, root=root).resolve() == expected.resolve()


@pytest.mark.parametrize("name", ["prog", "/usr/bin/prog", "/bin/prog"])
def test_a_program_of_a_root_is_found_by_its_name_and_its_path(root, name):
    assert find_file(name, root=root) == root.resolve() / "usr" / "bin" / "prog"


def test_a_link_does_not_lead_out_of_the_root(root):
    (root / "usr" / "bin" / "out").symlink_to("../../../../../../etc/passwd")
    assert find_file("/usr/bin/out", root=root) == Path("/usr/bin/out")  # of this host, where it is not


def test_a_word_that_names_nothing_is_refused(root):
    with pytest.raises(TargetError, match="neither a program nor a library"):
        find_file("nosuch", root=root)
    with pytest.raises(TargetError, match="did you mean 'testbins:kernel'"):
        find_file("testbins:kernl")
    with pytest.raises(TargetError, match=r"stands for \d+ files"):
        find_file("testbins:user")


@pytest.mark.parametrize(
    "words",
    [
        ("check", "--no-run", "--states", "1"),
        ("sites",),
        ("uprobe", "-l"),
        ("usdt", "-l"),
    ],
    ids=lambda words: words[0],
)
def test_every_command_takes_the_same_words(words, root):
    name, own = ("libzoo", "testbins:zoo") if words[0] == "usdt" else ("prog", "testbins:tiny")
    isa = ["--isa", "x86_64"]
    assert run_trapline([*words, own, *isa]).returncode == 0
    found = run_trapline([*words, name, "--root", str(root)])
    assert found.returncode == 0, found.stderr
    for wrong in ("testbins:tinny", "nosuch"):
        wanted = [*words, wrong, *isa, *(["--root", str(root)] if wrong == "nosuch" else [])]
        refused = run_trapline(wanted)
        assert refused.returncode in {1, 2}
        assert len(refused.stderr.splitlines()) == 1, refused.stderr


@pytest.mark.parametrize("isa", ISAS)
def test_the_program_to_trace_may_be_one_of_the_packages_own(isa):
    traced = run_trapline(["uprobe", "p:testbins:tiny:tiny_length", "-c", "testbins:tiny", "--isa", isa])
    assert traced.returncode == 0, traced.stderr
    assert "tiny_length: (0x" in traced.stdout


@pytest.mark.parametrize("isa", ISAS)
def test_the_semaphore_of_a_traced_marker_is_set(isa):
    """`zoo:http__client__request` asks its semaphore first: it would not fire without."""
    traced = run_trapline(["usdt", "zoo:http__client__request", "-c", "testbins:zoo markers", "--isa", isa])
    assert traced.returncode == 0, traced.stderr
    assert "zoo_http__client__request: (0x" in traced.stdout


def test_a_misspelt_marker_gets_a_proposal():
    refused = run_trapline(["usdt", "zoo:strin", "-c", "testbins:zoo markers"])
    assert "did you mean 'zoo:string'" in refused.stderr


def test_find_in_takes_no_directory_for_a_file(root):
    from emu.guest.linux.fs.dir import Directory

    assert find_in(Directory(host=root), "/usr/bin") is None
