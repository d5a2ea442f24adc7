"""exec: a program's segments, its interpreter and its stack in a new address space.

Source: Linux fs/binfmt_elf.c, fs/binfmt_script.c; the System V ABI for what is on the stack.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE, round_up
from emu.guest.linux.errno import E2BIG, EACCES, EINVAL, ELOOP, ENOEXEC, ENOMEM, ETXTBSY, LinuxError
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.regular import RegularFile
from emu.guest.linux.mm.address_space import Area, Space
from emu.guest.linux.mm.page_frames import Frames
from emu.guest.linux.process.cred import Credentials
from emu.isa.linux_abi import LinuxAbi
from emu.support.words import BadAddressError

STACK_SIZE: Final = 8 << 20
_MMAP_GAP: Final = 128 << 20
# The stack begins so far below the end of its area, as Linux' random stacks do.  Otherwise its hot pages and the data
# of ld.so, which is mapped first, have the same lower bits, and displace each other in Unicorn's TLB.  On AArch64 and
# RISC-V most functions read the word there that protects the stack.
_STACK_GAP: Final = 16 * PAGE
# Bytes of arguments and environment with their pointers: a quarter of the stack's limit (fs/exec.c).
ARGUMENTS_MAX: Final = 2 << 20
_SCRIPTS_MAX: Final = 4
# Longest path of an interpreter, with its NUL (PATH_MAX).
_PATH_MAX: Final = 4096

_HEADER: Final = {8: struct.Struct("<16sHHIQQQIHHHHHH"), 4: struct.Struct("<16sHHIIIIIHHHHHH")}
_SEGMENT: Final = {8: struct.Struct("<IIQQQQQQ"), 4: struct.Struct("<IIIIIIII")}
# By the bytes of a word.
_IDENT: Final = {8: b"\x7fELF\x02\x01\x01", 4: b"\x7fELF\x01\x01\x01"}
_ET_EXEC, _ET_DYN = 2, 3
_PT_LOAD, _PT_INTERP, _PT_PHDR, _PT_GNU_STACK = 1, 3, 6, 0x6474E551
_FLAGS: Final = {4: Access.READ, 2: Access.WRITE, 1: Access.EXECUTE}


# The name a program was started by, its arguments and its environment.
_Strings = tuple[bytes, tuple[bytes, ...], tuple[bytes, ...]]
LookUp = Callable[[str], tuple[Inode, str]]


class _Segment(NamedTuple):
    kind: int
    flags: int
    offset: int
    address: int
    physical: int
    file_size: int
    size: int
    alignment: int

    @property
    def access(self) -> Access:
        access = Access(0)
        for flag, right in _FLAGS.items():
            if self.flags & flag:
                access |= right
        return access


class _Program(NamedTuple):
    """An ELF file's headers."""

    file: RegularFile
    path: str
    kind: int
    entry: int
    headers_at: int
    segments: tuple[_Segment, ...]

    @property
    def loads(self) -> tuple[_Segment, ...]:
        return tuple(segment for segment in self.segments if segment.kind == _PT_LOAD)

    @property
    def span(self) -> tuple[int, int]:
        """First and last address, whole pages."""
        start = min(segment.address for segment in self.loads) // PAGE * PAGE
        end = max(segment.address + segment.size for segment in self.loads)
        return start, round_up(end)

    def find(self, kind: int) -> _Segment | None:
        return next((segment for segment in self.segments if segment.kind == kind), None)


@dataclass(slots=True)
class Loaded:
    """A program ready to run."""

    space: Space
    entry: int
    """The address at which the CPU starts: in the interpreter, if there is one."""
    stack: int
    file: RegularFile
    path: str
    arguments: tuple[bytes, ...]
    auxiliary: bytes
    program_entry: int
    """The program's own entry (AT_ENTRY)."""
    restorer: int
    """Address of the code that returns from a signal; 0: programs bring their own."""


def load(
    frames: Frames,
    abi: LinuxAbi,
    look_up: LookUp,
    path: str,
    arguments: tuple[bytes, ...],
    environment: tuple[bytes, ...],
    random: bytes,
    credentials: Credentials,
) -> Loaded:
    """Load a program, or the interpreter that a script names.

    `look_up` gives the inode that a path leads to, and its path from the root; `random` is sixteen
    bytes for AT_RANDOM; `credentials` are those before execve.  Raises `LinuxError`: what look_up
    raises, EACCES, ENOEXEC, EINVAL, E2BIG, ENOMEM, ELOOP.
    """
    file, full = _executable(look_up(path))
    name = path
    for _ in range(_SCRIPTS_MAX):
        head = file.read(0, 256)
        if not head.startswith(b"#!"):
            break
        words = head[2:].split(b"\n", 1)[0].strip().split(None, 1)
        if not words:
            raise LinuxError(ENOEXEC)
        interpreter = words[0].decode("utf-8", "surrogateescape")
        arguments = (*words, _bytes(name), *arguments[1:])
        file, full = _executable(look_up(interpreter))
        name = interpreter
    else:
        raise LinuxError(ELOOP)
    program = _parse(file, full, abi)
    credentials = credentials.copy()
    credentials.executed(file)
    space = Space(frames, PAGE * 16, abi.highest)
    space.top = abi.highest - _MMAP_GAP
    try:
        return _load(space, program, abi, look_up, (_bytes(name), arguments, environment), random, credentials)
    except BaseException:
        space.release()
        raise


def _load(
    space: Space,
    program: _Program,
    abi: LinuxAbi,
    look_up: LookUp,
    strings: _Strings,
    random: bytes,
    credentials: Credentials,
) -> Loaded:
    bias = abi.executable_base if program.kind == _ET_DYN else 0
    wanted = program.find(_PT_INTERP)
    if program.kind == _ET_DYN and wanted is None:
        # A static position-independent program, or the interpreter itself, run by hand: where mmap would put it.
        start, end = program.span
        bias = (space.unmapped_area(end - start) or 0) - start
    _map(space, program, bias)
    entry, base = program.entry + bias, 0
    if wanted is not None:
        interpreter = _parse(*_executable(look_up(_interpreter_name(program.file, wanted))), abi)
        start, end = interpreter.span
        address = space.unmapped_area(end - start)
        if address is None:
            raise LinuxError(ENOMEM)
        base = address - start if interpreter.kind == _ET_DYN else 0
        _map(space, interpreter, base)
        entry = interpreter.entry + base
    space.brk_start = space.brk = program.span[1] + bias
    restorer = _map_restorer(space, abi)
    stack = _area(abi.highest - STACK_SIZE, abi.highest, _stack_access(program), "[stack]")
    space.map(stack)
    headers = program.find(_PT_PHDR)
    loads = program.loads
    at = headers.address if headers else program.headers_at - loads[0].offset + loads[0].address
    vector = {
        16: abi.hwcap,
        26: abi.hwcap2,
        6: PAGE,
        17: 100,
        3: at + bias,
        4: _SEGMENT[abi.word].size,
        5: len(program.segments),
        7: base,
        8: 0,
        9: program.entry + bias,
        11: credentials.user.real,
        12: credentials.user.effective,
        13: credentials.group.real,
        14: credentials.group.effective,
        23: int(
            credentials.user.real != credentials.user.effective or credentials.group.real != credentials.group.effective
        ),
    }
    sp, auxiliary = _fill_stack(space, abi, strings, vector, random)
    own_entry = (program.entry + bias) & _mask(abi)
    return Loaded(space, entry & _mask(abi), sp, program.file, program.path, strings[1], auxiliary, own_entry, restorer)


def _interpreter_name(file: RegularFile, wanted: _Segment) -> str:
    """Return the path in PT_INTERP.  Raises `LinuxError` ENOEXEC, as Linux' load_elf_binary."""
    if not 2 <= wanted.file_size <= _PATH_MAX:
        raise LinuxError(ENOEXEC)
    text = file.read(wanted.offset, wanted.file_size)
    if len(text) < wanted.file_size or text[-1]:
        raise LinuxError(ENOEXEC)
    return text.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _mask(abi: LinuxAbi) -> int:
    """Return the bits of an address: sums of what a file says may have more."""
    return (1 << 8 * abi.word) - 1


def _executable(found: tuple[Inode, str]) -> tuple[RegularFile, str]:
    inode, path = found
    if not isinstance(inode, RegularFile) or not inode.permissions & 0o111:
        raise LinuxError(EACCES)
    if inode.writers:
        raise LinuxError(ETXTBSY)
    return inode, path


def _parse(file: RegularFile, path: str, abi: LinuxAbi) -> _Program:
    header, row = _HEADER[abi.word], _SEGMENT[abi.word]
    head = file.read(0, header.size)
    if len(head) < header.size or head[:7] != _IDENT[abi.word]:
        raise LinuxError(ENOEXEC)
    (_, kind, machine, _, entry, table, _, _, _, entry_size, count, _, _, _) = header.unpack(head)
    if kind not in {_ET_EXEC, _ET_DYN} or machine != abi.elf_machine or entry_size != row.size or not count:
        raise LinuxError(ENOEXEC)
    data = file.read(table, count * row.size)
    if len(data) < count * row.size:
        raise LinuxError(ENOEXEC)
    segments = tuple(_segment(fields, abi.word) for fields in row.iter_unpack(data))
    program = _Program(file, path, kind, entry, table, segments)
    if not program.loads:
        raise LinuxError(ENOEXEC)
    for segment in program.loads:
        if segment.file_size > segment.size or (segment.address - segment.offset) % PAGE or segment.size >> 40:
            raise LinuxError(EINVAL)
    return program


def _segment(fields: tuple[int, ...], word: int) -> _Segment:
    """Return the fields of a program header by name; a 32-bit one has its flags last but one."""
    if word == 8:
        return _Segment(*fields)
    kind, offset, address, physical, file_size, size, flags, alignment = fields
    return _Segment(kind, flags, offset, address, physical, file_size, size, alignment)


def _area(start: int, end: int, access: Access, name: str) -> Area:
    return Area(start, end, access, name=name)


def _map(space: Space, program: _Program, bias: int) -> None:
    """Map the segments: pages of the file, then zeros."""
    backing = program.file.pages(space.frames)
    for segment in program.loads:
        start = (segment.address + bias) // PAGE * PAGE
        file_end = segment.address + bias + segment.file_size
        end = -(-(segment.address + bias + segment.size) // PAGE) * PAGE
        if start < space.lowest or end > space.highest:
            raise LinuxError(ENOMEM)
        mapped = round_up(file_end) if segment.file_size else start
        if mapped > start:
            offset = segment.offset // PAGE * PAGE
            space.map(Area(start, mapped, segment.access, backing=backing, offset=offset, name=program.path))
        if end > mapped:
            space.map(_area(mapped, end, segment.access, ""))
        if segment.size > segment.file_size and file_end % PAGE and mapped > start:
            try:
                space.poke(file_end, bytes(mapped - file_end))
            except BadAddressError:  # the file ends before the segment does
                raise LinuxError(ENOEXEC) from None


def _stack_access(program: _Program) -> Access:
    header = program.find(_PT_GNU_STACK)
    access = Access.READ | Access.WRITE
    return access if header is None or not header.flags & 1 else access | Access.EXECUTE


def _map_restorer(space: Space, abi: LinuxAbi) -> int:
    if not abi.restorer:
        return 0
    address = space.unmapped_area(PAGE)
    if address is None:
        raise LinuxError(ENOMEM)
    space.map(_area(address, address + PAGE, Access.READ | Access.EXECUTE, "[vdso]"))
    space.poke(address, abi.restorer)
    return address


def _fill_stack(
    space: Space,
    abi: LinuxAbi,
    strings: _Strings,
    vector: dict[int, int],
    random: bytes,
) -> tuple[int, bytes]:
    """Put arguments, environment and auxiliary vector on the stack.

    Return the stack pointer and the vector.
    """
    name, arguments, environment = strings
    if sum(len(text) + 9 for text in (*arguments, *environment)) > ARGUMENTS_MAX:
        raise LinuxError(E2BIG)
    top = space.highest - _STACK_GAP - 8

    def push(data: bytes) -> int:
        nonlocal top
        top -= len(data)
        space.poke(top, data)
        return top

    file_name = push(name + b"\0")
    environment_at = [push(text + b"\0") for text in reversed(environment)][::-1]
    arguments_at = [push(text + b"\0") for text in reversed(arguments)][::-1]
    platform = push(_bytes(abi.platform) + b"\0") if abi.platform else 0
    top &= ~15
    random_at = push(random)
    vector = vector | {25: random_at, 31: file_name} | ({15: platform} if platform else {})
    form = "Q" if abi.word == 8 else "I"
    entries = ((kind, value & _mask(abi)) for kind, value in (*vector.items(), (0, 0)))
    auxiliary = b"".join(struct.pack(f"<2{form}", *entry) for entry in entries)
    pointers = (len(arguments_at), *arguments_at, 0, *environment_at, 0)
    block = struct.pack(f"<{len(pointers)}{form}", *pointers) + auxiliary
    top = (top - len(block)) & ~15
    space.poke(top, block)
    return top, auxiliary
