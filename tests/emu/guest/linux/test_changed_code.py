"""Code that changes after it has run: whoever writes it, the new code runs.

The programs are for all ISAs and end with 0, as they do natively and under qemu-user.
"""

import ast
from pathlib import Path

import pytest

from emu.assembly.keystone_engine import available
from emu.engine import native_callbacks
from tests.emu.guest.linux.small_program import (
    ANONYMOUS,
    EXECUTE,
    FIXED,
    KEPT,
    PAGE,
    PRIVATE,
    READ,
    SHARED,
    WRITE,
    Kept,
    Writer,
    run_code,
)

pytestmark = pytest.mark.skipif(not available(), reason="keystone is not installed")

ISAS = ("x86_64", "i386", "aarch64", "riscv64")
# The memory with code, another mapping of it, and data.
CODE, ALIAS, DATA = 0x70_0000, 0x72_0000, 0x74_0000
ALL = READ | WRITE | EXECUTE


def ends_well(isa, writer, folder):
    for accelerated in {True, False} if native_callbacks.available() else {False}:
        guest, faults = run_code(isa, writer.code(), folder, accelerated=accelerated)
        assert not faults.noted
        assert guest.exit_status == 0, f"expectation {guest.exit_status} is not met"


def mapped(writer, kind, rights=ALL):
    """Map memory of a kind for code; return the file descriptor of a file."""
    descriptor = None
    if "file" in kind:
        writer.store(DATA + 0x800, b"c\0")
        writer.call("memfd_create", DATA + 0x800, 0)
        descriptor = writer.keep(1)
        writer.call("ftruncate", descriptor, 2 * PAGE)
    flags = (SHARED if "shared" in kind else PRIVATE) | FIXED | (0 if descriptor else ANONYMOUS)
    writer.call("mmap", CODE, PAGE, rights, flags, descriptor or -1, 0)
    return descriptor


def start(isa, kind="private", rights=ALL):
    writer = Writer(isa)
    writer.call("mmap", DATA, PAGE, READ | WRITE, PRIVATE | ANONYMOUS | FIXED, -1, 0)
    return writer, mapped(writer, kind, rights)


def runs(writer, value, at=CODE):
    writer.run(at)
    writer.expect(value)


def pipe(writer):
    writer.call("pipe2", KEPT + 0x40, 0)
    for number, at in ((2, KEPT + 0x40), (3, KEPT + 0x44)):
        load_word(writer, at)
        writer.keep(number)


def load_word(writer, address):
    register = {"x86_64": "eax", "i386": "eax", "aarch64": "w0", "riscv64": "a0"}[writer.name]
    match writer.name:
        case "aarch64":
            writer.set("x9", address)
            writer.add(f"ldr {register}, [x9]")
        case "riscv64":
            writer.set("t0", address)
            writer.add(f"lw {register}, 0(t0)")
        case _:
            word = "rax" if writer.name == "x86_64" else "eax"
            writer.add(f"mov {word}, {address}; mov {register}, [{word}]")


def vector(writer, at, address, size):
    word = writer.isa.word
    writer.store(at, address.to_bytes(word, "little") + size.to_bytes(word, "little"))


def by_read(writer, code):
    pipe(writer)
    writer.call("write", Kept(3), DATA, len(code))
    writer.call("read", Kept(2), CODE, len(code))


def by_single_bytes(writer, code):
    pipe(writer)
    writer.call("write", Kept(3), DATA, len(code))
    for at in range(len(code)):
        writer.call("read", Kept(2), CODE + at, 1)


def by_readv(writer, code):
    pipe(writer)
    vector(writer, DATA + 0x100, CODE, len(code))
    writer.call("write", Kept(3), DATA, len(code))
    writer.call("readv", Kept(2), DATA + 0x100, 1)


def by_process_vm_writev(writer, code):
    vector(writer, DATA + 0x100, CODE, len(code))
    vector(writer, DATA + 0x140, DATA, len(code))
    writer.call("getpid")
    writer.keep(4)
    writer.call("process_vm_writev", Kept(4), DATA + 0x140, 1, DATA + 0x100, 1, 0)


def by_recv(writer, code):
    writer.call("socketpair", 1, 1, 0, KEPT + 0x40)
    for number, at in ((2, KEPT + 0x40), (3, KEPT + 0x44)):
        load_word(writer, at)
        writer.keep(number)
    writer.call("sendto", Kept(3), DATA, len(code), 0, 0, 0)
    writer.call("recvfrom", Kept(2), CODE, len(code), 0, 0, 0)


def by_store(writer, code):
    writer.store(CODE, code)


WAYS = {one.__name__: one for one in (by_read, by_single_bytes, by_readv, by_process_vm_writev, by_recv, by_store)}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", ["private", "shared", "private file", "shared file"])
@pytest.mark.parametrize("way", WAYS)
def test_what_a_system_call_writes_is_executed(isa, kind, way, tmp_path):
    writer, _ = start(isa, kind)
    for value in (1, 2, 3):
        code = writer.returning(value)
        writer.store(DATA, code)
        (WAYS[way] if value > 1 else by_store)(writer, code)
        runs(writer, value)
        runs(writer, value)
    ends_well(isa, writer, tmp_path)


@pytest.mark.parametrize("isa", ISAS)
def test_a_file_that_is_written_is_executed_where_it_is_mapped(isa, tmp_path):
    for kind in ("private file", "shared file"):
        writer, descriptor = start(isa, kind)
        for value in (1, 2, 3):
            code = writer.returning(value)
            writer.store(DATA, code)
            writer.call("pwrite64", descriptor, DATA, len(code), 0, 0)
            runs(writer, value)
        ends_well(isa, writer, tmp_path)


@pytest.mark.parametrize("isa", ISAS)
def test_code_is_written_through_a_mapping_that_cannot_be_executed(isa, tmp_path):
    writer, descriptor = start(isa, "shared file", READ | EXECUTE)
    writer.call("mmap", ALIAS, PAGE, READ | WRITE, SHARED | FIXED, descriptor, 0)
    for value in (1, 2, 3):
        writer.store(ALIAS, writer.returning(value))
        runs(writer, value)
        runs(writer, value)
    for value in (4, 5):
        writer.in_child(lambda value=value: writer.store(ALIAS, writer.returning(value)))
        runs(writer, value)
    ends_well(isa, writer, tmp_path)


@pytest.mark.parametrize("isa", ISAS)
def test_a_mapping_that_cannot_be_executed_stays_so(isa, tmp_path):
    writer, descriptor = start(isa, "shared file", READ | EXECUTE)
    writer.call("mmap", ALIAS, PAGE, READ | WRITE, SHARED | FIXED, descriptor, 0)
    writer.store(ALIAS, writer.returning(1))
    runs(writer, 1)
    writer.store(ALIAS, writer.returning(2))
    writer.run(ALIAS)
    guest, faults = run_code(isa, writer.code(), tmp_path)
    assert faults.noted == [(11, 2, ALIAS, ALIAS)]
    assert guest.exit_status == 128 + 11


@pytest.mark.parametrize("isa", ["x86_64", "i386"])
@pytest.mark.parametrize("before", [False, True], ids=["the first run", "the parent has run it"])
@pytest.mark.parametrize("kind", ["private", "private file"])
def test_a_child_changes_its_next_instruction_while_the_page_is_shared(isa, before, kind, tmp_path):
    # movl $5, CODE+11; mov $9, %eax; ret
    address = (1 if isa == "x86_64" else CODE + 11).to_bytes(4, "little")
    code = b"\xc7\x05" + address + bytes.fromhex("05000000b809000000c3")
    writer, descriptor = start(isa, kind)
    if descriptor:
        writer.store(DATA, code)
        writer.call("pwrite64", descriptor, DATA, len(code), 0, 0)
    else:
        writer.store(CODE, code)
    if before:
        runs(writer, 5)
        writer.store(CODE, code)
    writer.in_child(lambda: runs(writer, 5))
    runs(writer, 5)
    ends_well(isa, writer, tmp_path)


@pytest.mark.parametrize("isa", ["x86_64", "aarch64", "riscv64"])
def test_code_stores_to_its_own_page_through_another_mapping(isa, tmp_path):
    writer, descriptor = start(isa, "shared file", READ | EXECUTE)
    writer.call("mmap", ALIAS, PAGE, READ | WRITE, SHARED | FIXED, descriptor, 0)
    function = Writer(isa, prepared=False)
    function.store(ALIAS + 64, function.returning(7))
    function.add({"x86_64": "ret", "aarch64": "ret", "riscv64": ".4byte 0x8067"}[isa])
    writer.store(ALIAS, function.assembled(CODE))
    writer.store(ALIAS + 64, writer.returning(1))
    runs(writer, 1, CODE + 64)
    writer.run(CODE)
    runs(writer, 7, CODE + 64)
    ends_well(isa, writer, tmp_path)


# -- who writes to the RAM of a guest without the functions that forget translated code

WRITERS = {
    "emu/engine/memory/memory.py": "the functions themselves",
    "emu/guest/linux/mm/page_frames.py": "forgets, or the frame is new",
    "emu/guest/linux_kernel/executable.py": "entries of page tables",
    "emu/guest/linux_kernel/machine/snapshot.py": "a machine that has not run",
    "emu/guest/linux_kernel/platforms/platform.py": "a machine that has not run",
    "emu/guest/kernel/user/memory.py": "forgets",
    "emu/guest/kernel/boot/loader.py": "a machine that has not run",
    "emu/guest/kernel/smp/cpus.py": "data of other CPUs",
    "trapline/lab/check/site/kernel_path.py": "the code is what it was",
}


def _stores_to_ram(tree):
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Subscript):
                array = target.value
                name = array.attr if isinstance(array, ast.Attribute) else getattr(array, "id", "")
                if name in {"ram", "_ram"}:
                    yield node.lineno


def test_every_writer_of_a_guests_ram_is_known():
    root = Path(__file__).parents[4]
    found = set()
    for package in ("emu", "providers", "trapline"):
        for path in (root / package).rglob("*.py"):
            if any(_stores_to_ram(ast.parse(path.read_text()))):
                found.add(path.relative_to(root).as_posix())
    assert found == set(WRITERS), "a new one forgets what was translated, and says so here"
