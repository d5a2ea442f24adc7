"""Events on a guest: definitions registered as uprobes, each hit a line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from emu.elf.file import ElfError
from emu.elf.image import Image, no_instruction
from emu.guest.linux.errno import LinuxError
from emu.guest.linux.fs.namei import path_of, walk
from emu.guest.linux.fs.regular import RegularFile
from emu.guest.linux.process.process import LinuxObserver
from emu.support.words import BadAddressError
from providers.uprobes import Consumer, UprobeError, Uprobes
from trapline.export.events import Event, Phase, Stack
from trapline.framework.base.engines import chosen, worth_compiling
from trapline.ftrace import output
from trapline.ftrace.definition import LONGEST_NAME, Definition
from trapline.ftrace.errors import UprobeEventError
from trapline.ftrace.expressions import FetchArgument
from trapline.ftrace.fetch import fetch
from trapline.ftrace.filter import TraceOptions
from trapline.ftrace.native.lines import EventRuns, Lines
from trapline.support.own_files import OWN
from trapline.support.targets import find_in

if TYPE_CHECKING:
    from emu.guest.base import Thread as GuestThread
    from emu.guest.linux.guest import LinuxGuest
    from emu.guest.linux.process.process import Thread


class TraceError(Exception):
    """An event that cannot be traced; the message names it and says why."""


@dataclass(slots=True)
class _Hit:
    """The state that arguments are read from.  Implements `trapline.ftrace.fetch.Target`."""

    guest: LinuxGuest
    comm: str
    address: int
    offset: int

    def register(self, name: str) -> int:
        """Return a register."""
        return self.guest.engine.read_register(name)

    def load(self, address: int, size: int) -> bytes:
        """Read memory.  Raises `BadAddressError`."""
        return self.guest.user_load(address, size)

    def file_address(self, offset: int) -> int:
        """Return the address of a byte of the file, as if all of it were mapped like the probe."""
        return self.address - self.offset + offset


class EventTrace(LinuxObserver):
    """Traces events of a guest; lines go to `write`, several at once.

    An event that is hit often is compiled to machine code, which puts its lines into a buffer.
    They are shown before each system call of the program, and `finish` shows the last ones.
    """

    def __init__(
        self,
        guest: LinuxGuest,
        write: Callable[[str], object],
        options: TraceOptions | None = None,
        record: Callable[[Event], object] | None = None,
    ) -> None:
        """Show events by `write`; `record` also takes each, and then none becomes machine code."""
        self._guest = guest
        self._write = write
        self._options = options or TraceOptions()
        self._uprobes = Uprobes(guest.kernel, self._options.fidelity)
        self._lines = Lines(guest, self._options, write)
        self._worth = worth_compiling(chosen(), asked=False) if guest.kernel.engine.accelerated else 0
        self._record = record
        if record is not None:
            self._worth = 0
        self._shown = 0
        guest.kernel.watch(self)

    @property
    def count(self) -> int:
        """Events shown."""
        return self._shown + self._lines.count

    def system_call(self, thread: Thread, name: str, arguments: Sequence[int]) -> None:
        """Show the buffered lines before a system call."""
        del thread, name, arguments
        self._lines.drain()

    def finish(self) -> None:
        """Show the remaining lines."""
        self._lines.drain()

    def add(self, definition: Definition) -> None:
        """Enable an event.  Raises `TraceError` with the kernel's reason."""
        file, _ = find_file(self._guest, definition.path)

        runs = EventRuns()

        def show(function: int) -> None:
            runs.hits += 1
            self._show(definition, function if definition.returns else None)
            if runs.hits == self._worth:
                self._lines.compile(definition, runs, show)

        consumer = Consumer(handler=lambda _frame: show(0), runs=runs.address)
        if definition.returns:
            consumer = Consumer(ret_handler=lambda function, _frame: show(function), ret_runs=runs.address)
        try:
            self._uprobes.register(file, definition.offset, consumer, definition.counter)
        except UprobeError as error:
            raise TraceError(f"{definition.path}: enabling {definition.event}: error {error.errno}, {error}") from None

    def _show(self, definition: Definition, function: int | None) -> None:
        guest, options = self._guest, self._options
        self._lines.drain()
        thread = guest.thread()
        if options.pid not in {None, thread.pid} or options.tid not in {None, thread.tid}:
            return
        pc = guest.engine.pc
        target = _Hit(guest, thread.execname, pc if function is None else function, definition.offset)
        values = [(one.name, self._value(one, target)) for one in definition.arguments]
        if options.wanted is not None and not options.wanted({**dict(values), "common_pid": str(thread.tid)}):
            return
        self._shown += 1
        head = output.prefix(thread.execname, thread.tid, guest.cpu, guest.now())
        self._write(head + output.event(definition.event, pc, function, values) + "\n")
        if self._record is not None:
            self._record(self._event(definition, dict(values), thread))
        if options.stacks:
            self._write(head + output.user_stack(guest.user_stack()) + "\n")

    def _event(self, definition: Definition, values: dict[str, str], thread: GuestThread) -> Event:
        """Return a hit as it is exported, with its stack where stacks are shown."""
        guest = self._guest
        stack = {}
        if self._options.stacks:
            stack = {"stack": Stack(map(self._frame, guest.user_stack()))}
        return Event(
            guest.now(), guest.cpu, thread.pid, thread.tid, thread.execname, Phase.INSTANT,
            definition.group, "", definition.event, "", {**values, **stack},
        )  # fmt: skip

    def _frame(self, pc: int) -> str:
        location = self._guest.locate_user(pc)
        if location is None:
            return f"{pc:#x}"
        return f"{location.module.rpartition('/')[2]}`{location.symbol or hex(pc)}"

    def _value(self, argument: FetchArgument, target: _Hit) -> str:
        try:
            return fetch(argument, target, self._guest.isa)
        except BadAddressError:
            return "0x0"


def find_file(guest: LinuxGuest, path: str) -> tuple[RegularFile, str]:
    """Return a file of the guest and its path.  Raises `TraceError`."""
    root = guest.kernel.root
    try:
        entry = walk(root, guest.kernel.first.surroundings.directory if guest.kernel.first else root, path)
        inode = entry.found()
    except LinuxError:
        raise TraceError(f"{path}: no such file in the guest; --root names the directory it sees as /") from None
    if not isinstance(inode, RegularFile):
        raise TraceError(f"{path}: not a regular file")
    return inode, path_of(root, entry.directory, entry.name)


def find_target(guest: LinuxGuest, name: str) -> str:
    """Return the path in the guest of a TARGET: a path, a program or a library.

    Raises `TraceError`.
    """
    process = guest.kernel.first
    if "/" in name:
        return name
    if process is not None and process.path.rsplit("/", 1)[-1] == name.removeprefix(OWN):
        return process.path
    found = find_in(guest.kernel.root, name)
    if found is None:
        raise TraceError(f"{name}: neither a program nor a library of the guest; give its path")
    return found


def open_image(guest: LinuxGuest, path: str) -> Image:
    """Return a file of the guest as ELF.  Raises `TraceError`."""
    file, full = find_file(guest, path)
    try:
        return Image(full, content=file.read(0, file.size))
    except ElfError as error:
        raise TraceError(str(error)) from None


def symbol_offsets(image: Image, symbol: str) -> list[int]:
    """Return the offsets in the file of the functions of a name.  Raises `TraceError`."""
    try:
        found = image.named(symbol) or [image.symbol(symbol)]
    except ElfError as error:
        raise TraceError(str(error)) from None
    code = [one for one in found if image.is_code(one)]
    offsets = [image.offset_of(one.value) for one in code or found]
    if None in offsets:
        raise TraceError(f"{image.path}: '{symbol}' is not in the file's code")
    return [offset for offset in offsets if offset is not None]


def check_site(guest: LinuxGuest, definition: Definition) -> None:
    """Refuse an offset where no instruction begins, as far as known.  Raises `TraceError`.

    Linux does not check this: a breakpoint inside an instruction changes the program's behaviour.
    """
    try:
        image = open_image(guest, definition.path)
    except TraceError:
        return  # not an ELF file; the kernel will report it
    addresses = image.addresses_of(definition.offset)
    why = no_instruction(image, addresses[0]) if addresses else "it is not loaded"
    if why is not None:
        raise TraceError(f"{definition.event}: {definition.path}:{definition.offset:#x}: {why} (-F probes it anyway)")


def explain(error: UprobeEventError) -> str:
    """Return a definition's error as text: the message, the line and the column in it."""
    return f"{error}\n  {error.command}\n  {' ' * error.column}^"


_FORM: Final = re.compile(
    r"([pr]):(?:(?P<alias>[^\s:]+)\s+)?(?P<target>(?:testbins:)?\S+?):"
    r"(?:\"(?P<quoted>[^\"]+)\"|(?P<symbol>[^\s:]+?))(?P<rest>\s.*)?"
)
# A name that a definition takes only in quotes.
_QUOTED: Final = re.compile(r"[\s:]")


def quoted(symbol: str) -> str:
    """Return a function's name as a definition has it."""
    return f'"{symbol}"' if _QUOTED.search(symbol) else symbol


def resolve(guest: LinuxGuest, text: str) -> list[str]:
    """Return a definition as uprobe_events takes it, with an offset, for each function of its name.

    The event has the function's name, in which `_` stands for what no event's name may have.
    Raises `TraceError`.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        return [text]
    kind, rest = found[1], found["rest"] or ""
    name, symbol = found["target"], found["quoted"] or found["symbol"]
    numeric = re.fullmatch(r"(0x[0-9a-fA-F]+|\d+)(%return)?(\([^)]*\))?", symbol)
    if found["alias"] is not None and numeric:
        return [text]
    path = find_target(guest, name)
    file, full = find_file(guest, path)
    del file
    if numeric:
        segment = full.rsplit("/", 1)[-1].split(".")[0]
        return [f"{kind}:{found['alias'] or f'{segment}_{symbol}'} {full}:{symbol}{rest}"]
    event = found["alias"] or _event(symbol)
    return [
        f"{kind}:{event}{f'_{number}' if number else ''} {full}:{offset:#x}{rest}"
        for number, offset in enumerate(symbol_offsets(open_image(guest, full), symbol))
    ]


def _event(symbol: str) -> str:
    """Return the name of a function's event (is_good_name() of Linux, and its longest name)."""
    name = re.sub(r"\W", "_", symbol, flags=re.ASCII)[: LONGEST_NAME - 3]
    return f"_{name}"[: LONGEST_NAME - 3] if name[0].isdigit() else name
