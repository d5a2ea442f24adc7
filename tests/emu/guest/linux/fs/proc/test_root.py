"""/proc has the current facts when it is read, in the form that tools expect."""

import re

import pytest

from emu.guest.kernel.boot import images
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.isa import ISAS


def proc(isa, *names):
    """Return the files of /proc/PID of a program that has come to its main."""
    guest = LinuxGuest(ISAS[isa], Program(str(images.linux(ISAS[isa], "zoo")), ("recursion",)))
    guest.run_to_start(main=True)
    directory = guest.kernel.root.get("proc").get(str(guest.target))
    return guest, [directory.get(name).content().decode() for name in names]


@pytest.mark.parametrize("isa", ISAS)
def test_every_file_of_a_process_can_be_read(isa):
    guest, _ = proc(isa)
    directory = guest.kernel.root.get("proc").get(str(guest.target))
    files = [name for name, inode in directory.entries().items() if hasattr(inode, "content")]
    assert {"cgroup", "io", "limits", "mountinfo", "smaps", "smaps_rollup", "stat", "status"} <= set(files)
    for name in files:
        assert isinstance(directory.get(name).content(), bytes), name


@pytest.mark.parametrize("isa", ISAS)
def test_smaps_and_statm_agree_with_status(isa):
    _, (smaps, statm, status, maps) = proc(isa, "smaps", "statm", "status", "maps")
    resident = sum(int(size) for size in re.findall(r"^Rss: +(\d+) kB$", smaps, re.MULTILINE))
    assert resident == int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) == 4 * int(statm.split()[1])
    sizes = sum(int(size) for size in re.findall(r"^Size: +(\d+) kB$", smaps, re.MULTILINE))
    assert sizes == int(re.search(r"VmSize:\s+(\d+) kB", status)[1])
    assert [line for line in smaps.splitlines() if re.match(r"[0-9a-f]+-", line)] == maps.splitlines()


def test_stat_has_its_fields_where_tools_look_for_them():
    guest, (stat,) = proc("x86_64", "stat")
    fields = stat.split()
    assert len(fields) == 52
    assert fields[0] == str(guest.target)
    assert fields[1:3] == ["(zoo)", "R"]
    assert int(fields[22]) == guest.kernel.first.space.size
    assert int(fields[23]) == guest.kernel.first.space.resident


def test_an_open_file_of_proc_follows_the_process():
    """`tr '\\0' ' ' < /proc/self/cmdline`: the shell opens it, and tr reads its own."""
    guest, _ = proc("x86_64")
    from emu.guest.linux.fs.file_kinds import GeneratedOpen

    inode = guest.kernel.root.get("proc").get(str(guest.target)).get("cmdline")
    file = GeneratedOpen(inode, 0, "/proc/self/cmdline")
    guest.kernel.first.arguments = (b"tr", b"x")
    assert file.read(100) == b"tr\0x\0"
    guest.kernel.first.arguments = (b"other",)
    assert file.read(100) == b"", "it is read to its end"
    file.seek(0, 0)
    assert file.read(100) == b"other\0"


def test_sys_says_that_there_is_one_cpu():
    guest, _ = proc("riscv64")
    cpus = guest.kernel.root.get("sys").make("devices/system/cpu")
    assert {name: cpus.get(name).content() for name in ("possible", "online")} == {"possible": b"0\n", "online": b"0\n"}
