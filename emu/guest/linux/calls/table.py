"""The table of system calls: a function for each, whose annotations are the types of its arguments.

    @call("read")
    def read(c: Caller, fd: Int, buffer: Address, size: Size) -> Blocking: ...

Arguments are 64-bit registers; an annotation says which C type they are read as; a `Path` is the
string there.  A call returns its result, raises `LinuxError`, or is a generator that yields `Wait`
where it blocks.
"""

from __future__ import annotations

import inspect
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from emu.guest.linux.errno import E2BIG, EACCES, EBADF, EFAULT, ENAMETOOLONG, ENOTDIR, LinuxError
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.namei import Dentry, walk
from emu.guest.linux.fs.open_file import O_PATH, OpenFile
from emu.guest.linux.process.binfmt_elf import ARGUMENTS_MAX
from emu.guest.linux.process.process import Process, SystemCall, Thread
from emu.guest.linux.system_call import ServedCall
from emu.guest.system_calls import CallSignature
from emu.support.words import WORD_MASK, BadAddressError

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel

# A signed 32-bit number, such as a descriptor.
Int: TypeAlias = int
# An unsigned 32-bit number, such as flags.
Unsigned: TypeAlias = int
# A signed machine word, or what two of them hold (`WHOLE`).
Long: TypeAlias = int
Size: TypeAlias = int
Address: TypeAlias = int
Path: TypeAlias = str
# The address of a path, for calls that check other arguments before they read it.
PathAddress: TypeAlias = int
Blocking: TypeAlias = SystemCall
Function = TypeVar("Function", bound=Callable[..., Any])
Handler = Callable[["Kernel", Thread, list[int]], "int | SystemCall | None"]

AT_FDCWD = -100
_PATH_MAX = 4096
# The bytes of a pointer to an argument on a stack, besides the string and its NUL.
_POINTER = 9
_PAGE = 4096

# Added to an argument that is a 64-bit number in two 32-bit registers.
WHOLE = 1 << 64

# System calls by name, filled by the modules of this package.
HANDLERS: dict[str, Handler] = {}
# The types of those that are functions here.
SIGNATURES: dict[str, CallSignature] = {}
_C_TYPES: dict[str, str] = {
    "Int": "int",
    "Unsigned": "unsigned int",
    "Long": "long",
    "Size": "size_t",
    "Address": "void *",
    "Path": "const char *",
    "PathAddress": "const char *",
}


def _signed(value: int, bits: int) -> int:
    sign = 1 << bits - 1
    return (value & (1 << bits) - 1 ^ sign) - sign


@dataclass(slots=True)
class Caller:
    """The thread that makes a system call, and the kernel that serves it."""

    kernel: Kernel
    thread: Thread

    @property
    def process(self) -> Process:
        """Its process."""
        return self.thread.process

    def now(self) -> int:
        """Virtual nanoseconds since the start."""
        return self.kernel.clock.now()

    def read(self, address: int, size: int) -> bytes:
        """Read memory of the process.  Raises `BadAddressError`."""
        return self.kernel.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Write memory of the process.  Raises `BadAddressError`."""
        self.kernel.write(address, data)

    @property
    def word(self) -> int:
        """Bytes of a long, a pointer, a size_t of the process."""
        return self.kernel.abi.word

    @property
    def time_form(self) -> str:
        """The format of a timespec for `struct` in the current call."""
        return "q" if self.kernel.abi.word == 8 or self.thread.call_name.endswith("64") else "i"

    def words(self, address: int, count: int) -> tuple[int, ...]:
        """Read machine words, unsigned."""
        form = f"<{count}{'Q' if self.word == 8 else 'I'}"
        return struct.unpack(form, self.kernel.read(address, count * self.word))

    def longs(self, address: int, count: int) -> tuple[int, ...]:
        """Read machine words, signed."""
        form = f"<{count}{'q' if self.word == 8 else 'i'}"
        return struct.unpack(form, self.kernel.read(address, count * self.word))

    def write_words(self, address: int, *values: int) -> None:
        """Write machine words, cut to their size."""
        size = self.word
        self.kernel.write(address, b"".join((value & (1 << 8 * size) - 1).to_bytes(size, "little") for value in values))

    def number(self, address: int, size: int = 8, *, signed: bool = False) -> int:
        """Read a number."""
        return int.from_bytes(self.kernel.read(address, size), "little", signed=signed)

    def string(self, address: int) -> bytes:
        """Read a string, its end left out.  Raises `LinuxError`: EFAULT, ENAMETOOLONG."""
        data = bytearray()
        while len(data) <= 32 * _PATH_MAX:
            at = address + len(data)
            try:
                part = self.kernel.read(at, _PAGE - at % _PAGE)
            except BadAddressError:
                raise LinuxError(EFAULT) from None
            end = part.find(b"\0")
            if end >= 0:
                return bytes(data + part[:end])
            data += part
        raise LinuxError(ENAMETOOLONG)

    def path(self, address: int) -> str:
        """Read a path.  Raises `LinuxError`: EFAULT, ENAMETOOLONG."""
        text = self.string(address)
        if len(text) >= _PATH_MAX:
            raise LinuxError(ENAMETOOLONG)
        return text.decode("utf-8", "surrogateescape")

    def strings(self, address: int) -> tuple[bytes, ...]:
        """Read an array of strings that a null pointer ends."""
        return tuple(self._strings(address)) if address else ()

    def _strings(self, address: int) -> Iterator[bytes]:
        total = 0
        while pointer := self.number(address, self.word):
            try:
                text = self.string(pointer)
            except LinuxError as error:
                raise LinuxError(E2BIG if error.number == ENAMETOOLONG else error.number) from None
            total += len(text) + _POINTER
            if total > ARGUMENTS_MAX:
                raise LinuxError(E2BIG)
            yield text
            address += self.word

    def file(self, fd: int) -> OpenFile:
        """Return an open file.  Raises `LinuxError` EBADF."""
        return self.process.files.get(fd)

    def opened(self, fd: int) -> OpenFile:
        """Return an open file that is not only a path (O_PATH).  Raises `LinuxError` EBADF."""
        file = self.file(fd)
        if file.flags & O_PATH:
            raise LinuxError(EBADF)
        return file

    def start(self, fd: int, path: str) -> Directory:
        """Return the directory where a path begins.  Raises `LinuxError`: EBADF, ENOTDIR."""
        if fd == AT_FDCWD or path.startswith("/"):
            return self.process.surroundings.directory
        if fd < 0:
            raise LinuxError(EBADF)
        inode = self.file(fd).inode
        if not isinstance(inode, Directory):
            raise LinuxError(ENOTDIR)
        return inode

    def dentry(self, fd: int, path: str, *, follow: bool = True, way: int = 0) -> Dentry:
        """Return the entry a path ends at; `way` is `resolve` of openat2.  Raises `LinuxError`."""
        start, credentials = self.start(fd, path), self.process.credentials
        return walk(self.process.surroundings.root, start, path, follow=follow, credentials=credentials, way=way)

    def need(self, inode: Inode, wanted: int) -> None:
        """Check the permissions of an inode (`emu.guest.linux.process.cred`).

        Raises `LinuxError` EACCES.
        """
        if not self.process.credentials.may(inode, wanted):
            raise LinuxError(EACCES)

    def inode(self, fd: int, path: str, *, follow: bool = True) -> Inode:
        """Return what a path leads to.  Raises `LinuxError`."""
        return self.dentry(fd, path, follow=follow).found()


_CONVERT: dict[str, Callable[[Caller, int], Any]] = {
    "Int": lambda _c, value: _signed(value, 32),
    "Unsigned": lambda _c, value: value & 0xFFFF_FFFF,
    "Long": lambda c, value: _signed(value, 64 if value >> 64 else 8 * c.word),
    "Size": lambda _c, value: value,
    "Address": lambda _c, value: value,
    "Path": lambda c, value: c.path(value),
    "PathAddress": lambda _c, value: value,
}


def call(*names: str) -> Callable[[Function], Function]:
    """Enter a function into the table, under these names."""

    def enter(function: Function) -> Function:
        parameters = list(inspect.signature(function).parameters.values())[1:]
        converters = [_CONVERT[str(parameter.annotation)] for parameter in parameters]
        types = tuple(_C_TYPES[str(parameter.annotation)] for parameter in parameters)

        def handler(kernel: Kernel, thread: Thread, arguments: list[int]) -> int | SystemCall | None:
            caller = Caller(kernel, thread)
            values = [convert(caller, value) for convert, value in zip(converters, arguments, strict=False)]
            result: int | SystemCall | None = function(caller, *values)
            return result

        for name in names:
            assert name not in HANDLERS, f"{name} has two handlers"
            HANDLERS[name] = handler
            SIGNATURES[name] = CallSignature("long", types)
        return function

    return enter


def extend(name: str, arguments: Sequence[int]) -> list[int]:
    """Return a call's arguments as unsigned 64-bit words, extended as their types ask."""
    known = SIGNATURES.get(name)
    if known is None:
        return list(arguments)
    return [_EXTEND.get(kind, int)(value) for kind, value in zip(known.parameters, arguments, strict=False)]


_EXTEND: dict[str, Callable[[int], int]] = {
    "int": lambda value: _signed(value, 32) & WORD_MASK,
    "unsigned int": lambda value: value & 0xFFFF_FFFF,
}


def bound(kernel: Kernel) -> dict[str, ServedCall]:
    """Return the system calls of one kernel."""
    return {name: partial(handler, kernel) for name, handler in HANDLERS.items()}
