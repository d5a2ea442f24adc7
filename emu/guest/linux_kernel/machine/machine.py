"""A machine with a Linux kernel on it, run in virtual time.

Between two runs of the engine the machine checks its timers, delivers interrupts, and skips idle
time.  A run depends only on the kernel, the initramfs, and the typed input: with equal ones, two
runs are equal to the instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

from emu.engine.engine import Engine
from emu.engine.errors import GuestCrashError
from emu.engine.handlers import TrapTaker
from emu.engine.state import DELIVER, HANDLED
from emu.engine.time.clock import DEFAULT_RATE, NANOSECONDS, VirtualClock
from emu.guest.base import RunState
from emu.guest.linux_kernel.code_pages import CodePages
from emu.guest.linux_kernel.errors import KernelFileError, LinuxKernelError
from emu.guest.linux_kernel.files.facts import KernelFacts
from emu.guest.linux_kernel.image import KernelImage
from emu.guest.linux_kernel.machine.console import Console
from emu.guest.linux_kernel.machine.initramfs import DONE, GO, LACKS, READY
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.guest.linux_kernel.platforms.platform import Board, Wires
from emu.guest.linux_kernel.tasks import Tasks
from emu.support.immutable import immutable

RAM: Final = 256 << 20
# Virtual time within which user space must be reached.
BOOT_LIMIT: Final = 100 * NANOSECONDS
# Virtual time within which /init must accept a typed command.
COMMAND_LIMIT: Final = 10 * NANOSECONDS
# A kernel executes far more blocks than a program.
_BLOCKS: Final = 1 << 18
# A console without echo; a panic ends the run; features that take long and have no use here are off.
ARGUMENTS: Final = (
    "panic=-1 nokaslr cryptomgr.notests "
    "initcall_blacklist=jent_mod_init,load_system_certificate_list,bpf_tcp_ca_kfunc_init"
)


@immutable
class MachineParts:
    """The parts of a machine."""

    kernel: KernelImage
    initramfs: bytes
    ram: int = RAM
    """Bytes."""
    append: str = ""
    """Additional words of the kernel's command line."""
    quiet: bool = True
    """Whether the kernel prints no messages on the console."""
    rate: int = DEFAULT_RATE
    accelerated: bool | None = None


class BoardTraps(TrapTaker):
    """Leaves all exceptions to the guest, but for those of the board's firmware."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def trap(self, number: int) -> int:
        """Take an exception for the firmware."""
        return HANDLED if self._board.trap(number) else DELIVER


class LinuxKernelMachine:
    """A machine; `show` receives the output of its console."""

    def __init__(self, parts: MachineParts, show: Callable[[bytes], object] = lambda _data: None) -> None:
        board = BOARDS.get(parts.kernel.isa)
        if board is None:
            raise KernelFileError(f"there is no machine for kernels of {parts.kernel.isa}")
        self.parts = parts
        self.isa = board.isa
        on_call = self._call if board.serves_calls else None
        self.engine = Engine(
            board.isa, parts.ram, on_system_call=on_call, accelerated=parts.accelerated, blocks=_BLOCKS
        )
        self.clock = VirtualClock(self.engine, parts.rate)
        self.console = Console(show, self._said)
        wires = Wires(self.console.send, self._power_off, self._reset, self._failed)
        self.board = board(self.engine, self.clock, wires)
        self.engine.handlers.taker = BoardTraps(self.board)
        self.ready = False
        """Whether /init waits for its command."""
        self.target: int | None = None
        """The process that runs the command, once it is about to."""
        self.status: int | None = None
        """The exit status of the command, once it has ended."""
        self.off = False
        """Whether the machine is switched off."""
        self.idle = False
        """Whether the CPU waits for an interrupt."""
        self._typed = b""
        """The text that is typed as soon as /init is ready."""
        self._limit: int | None = None
        """Virtual time within which /init must be ready; None: `run` has no such limit."""
        self._interrupted = False
        self._fault: BaseException | None = None
        self._jobs: list[Callable[[bool], object]] = []
        """What `pause` has put off."""
        self._depth = 0
        """How many calls of `run` there are, one in the other."""

    # -- booting

    def load(self) -> None:
        """Put the kernel into memory.  Raises `KernelFileError` if it does not fit."""
        parts, board = self.parts, self.board
        needed = len(parts.kernel.data) + len(parts.initramfs)
        if needed > parts.ram // 2:
            raise KernelFileError(
                f"the kernel and its initramfs have {needed >> 20} MiB, more than half of the machine's "
                f"{parts.ram >> 20} MiB of memory; give it more (-x ram=1g)"
            )
        talk = "quiet" if parts.quiet else board.early
        words = (board.arguments, f"console={board.console}", ARGUMENTS, talk, parts.append)
        board.load(parts.kernel, parts.initramfs, " ".join(filter(None, words)))

    def boot(self, limit: int = BOOT_LIMIT) -> None:
        """Run until /init waits for its command and the machine is idle.

        Raises `LinuxKernelError` if that takes more than `limit` nanoseconds of virtual time.
        """
        self.run(limit, until=lambda: self.ready and self.idle)
        if not (self.ready and self.idle):
            raise self._not_booted(limit)

    def boot_to(self, function: int, line: bytes, limit: int = BOOT_LIMIT) -> None:
        """Run until the kernel calls a function; the boot continues with the next `run`.

        `line` is typed as soon as /init waits for its command.

        Raises `LinuxKernelError` if the function is not called, or, in a later run, if user space
        is not reached within `limit` nanoseconds of virtual time.
        """
        called = False

        def note() -> None:
            nonlocal called
            if not called:
                called = True
                self.engine.stop()

        self.engine.code.on_code(function, note)
        self.run(limit, until=lambda: called)
        if not called:
            raise self._not_booted(limit)
        self._typed, self._limit = line, limit
        self._watch_code()

    def _not_booted(self, limit: int) -> LinuxKernelError:
        what = "it powered off" if self.off else f"not within {limit // NANOSECONDS} s of its own time"
        return LinuxKernelError(
            f"Linux {self.parts.kernel.release} did not reach user space: {what}", self.console.last_lines
        )

    @cached_property
    def facts(self) -> KernelFacts:
        """The kernel's data about itself.  Raises `KernelFileError` if it has no kallsyms."""
        return KernelFacts(self.parts.kernel)

    def _watch_code(self) -> None:
        """Notice the code of programs that the kernel writes; its page tables exist by now."""
        with suppress(KernelFileError):  # it can be booted all the same
            CodePages(self.engine, self.facts, Tasks(self.engine, self.facts))

    def type(self, data: bytes) -> None:
        """Type on the console."""
        self.board.receive(data)

    def command(self, line: bytes) -> None:
        """Type a command line, and run until it is about to be executed.

        Raises `LinuxKernelError` if /init does not accept it.
        """
        self._watch_code()
        self.type(line)
        self.run(self.clock.now() + COMMAND_LIMIT, until=lambda: self.target is not None)
        if self.target is None:
            raise self.error("/init did not accept the command; its root directory needs a working /bin/sh")

    # -- running

    def run(self, deadline: int | None, until: Callable[[], bool] = lambda: False) -> RunState:
        """Run to a time in nanoseconds, until `interrupt`, or until `until()` is true.

        `until` is called between two runs of the engine.

        Raises `LinuxKernelError`.
        """
        self._depth += 1
        try:
            return self._run(deadline, until)
        finally:
            self._depth -= 1

    def _run(self, deadline: int | None, until: Callable[[], bool]) -> RunState:
        board, clock, engine = self.board, self.clock, self.engine
        self._interrupted = False
        while not self.off:
            if self._jobs:
                self._do_jobs()
            if until():
                return RunState.RUNNING
            now, due = clock.now(), board.due()
            if self._limit is not None and now >= self._limit:
                raise self._not_booted(self._limit)
            if due is not None and now >= due:
                board.timer()
                due = board.due()
            if self._interrupted or (deadline is not None and now >= deadline):
                return RunState.RUNNING
            if self.idle and not board.pending():
                if board.stopped():
                    self._halted()
                else:
                    self._sleep(due, deadline)
                continue
            self.idle = False
            look_again = board.deliver()
            hard = min((clock.instructions_at(time) for time in (due, deadline) if time is not None), default=None)
            if look_again is not None:
                soon = engine.instructions + look_again
                hard = soon if hard is None else min(hard, soon)
            try:
                self.idle = engine.run(None, hard)
            except GuestCrashError as error:
                raise self._panic() or self.error(str(error)) from None
            if self._fault is not None:
                fault, self._fault = self._fault, None
                raise fault
        return RunState.FINISHED

    def _sleep(self, due: int | None, deadline: int | None) -> None:
        """Let the time pass in which the CPU waits for an interrupt."""
        wakes = min((time for time in (due, deadline) if time is not None), default=None)
        if wakes is None:
            raise self.error("the kernel waits forever: no timer is set, and the console has no input")
        self.clock.skip_to(wakes)

    def _halted(self) -> None:
        """Treat a CPU that waits with interrupts off as one that was switched off."""
        if self.status is None:
            raise self.error("the CPU has halted with interrupts off")
        self.off = True

    def interrupt(self) -> None:
        """Make the current run return soon."""
        self._interrupted = True
        self.engine.stop()

    def pause(self, job: Callable[[bool], object]) -> None:
        """Stop the CPU before its next block, and call `job` there, between two runs of the engine.

        `job` may call `run`.  It is called with True if another job has called the run that stops.
        """
        self._jobs.append(job)
        self.engine.stop()

    def _do_jobs(self) -> None:
        interrupted = self._interrupted
        while self._jobs:
            self._jobs.pop(0)(self._depth > 1)
        self._interrupted = interrupted

    def error(self, reason: str) -> LinuxKernelError:
        """Return the error of a kernel that cannot continue."""
        return LinuxKernelError(f"Linux {self.parts.kernel.release}: {reason}", self.console.last_lines)

    # -- reports of the board

    def _call(self) -> None:
        self.board.call()

    def _said(self, word: str) -> None:
        if word == READY:
            self.ready, self._limit = True, None
            if self._typed:
                self.type(self._typed)
        elif word.startswith(LACKS):
            self._failed(self.error(f"the module {word.removeprefix(LACKS).strip()} cannot be loaded"))
        elif word.startswith(GO):
            self.target = int(word.removeprefix(GO))
            self.engine.stop()
        elif word.startswith(DONE):
            self.status = int(word.removeprefix(DONE))
            self.console.shown = not self.parts.quiet

    def _power_off(self) -> None:
        self.off = True
        self.engine.stop()

    def _reset(self) -> None:
        self._failed(self._panic() or self.error("the kernel rebooted"))
        self.off = True

    def _panic(self) -> LinuxKernelError | None:
        """Return the error of a kernel that says it has panicked; None: it does not say so."""
        lines = self.console.log.decode("utf-8", "replace").splitlines()
        panic = next((line for line in lines if "Kernel panic - " in line), None)
        text = "" if panic is None else panic.partition("Kernel panic - not syncing: ")[2] or panic
        return self.error(f"the kernel panicked: {text.strip()}") if panic else None

    def _failed(self, error: BaseException) -> None:
        self._fault = self._fault or error
        self.engine.stop()

    # -- snapshots

    def state(self) -> dict[str, Any]:
        """Return the state in a snapshot beside registers and memory."""
        return {"board": self.board.state(), "ready": self.ready, "idle": self.idle}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore that state, after registers and memory."""
        self.ready, self.idle = state["ready"], state["idle"]
        self.board.set_state(state["board"])
