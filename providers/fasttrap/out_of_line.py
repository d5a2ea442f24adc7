"""Displaced instructions that run out of line: a copy in scratch space, and the way back.

The events of a thread that steps:

    begin         the pc is in the thread's scratch space, at the copy
    returned      the return trap after the copy: the probes after the instruction fire
    (no event)    without a return trap the scratch code jumps back by itself
    faulted       the copy has faulted: the thread is back at the original, as if it had not begun
    signalled     a signal comes: back at the original before the copy has run, after it otherwise
    stop          the thread has ended, or runs another program

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/intel/dtrace/fasttrap_isa.c (fasttrap_pid_probe,
fasttrap_return_probe), and illumos for signals (usr/src/uts/i86pc/os/dtrace_subr.c).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from emu.displaced.decision import OutOfLine
from emu.displaced.plans import Load, Set
from emu.engine.hits.hit_steps import Run
from emu.engine.hits.plan_encoding import Deposit, NativeOperation
from emu.guest.processes import EXECUTED, ProcessObserver
from emu.support.words import BadAddressError
from providers.fasttrap.port import Port
from providers.fasttrap.records import Point, Target

if TYPE_CHECKING:
    from emu.guest.processes import Processes, Slots, Thread
    from emu.isa.linux_signals import SignalInfo

_WORD: Final = 8
# The saved value of a scratch register.
_SAVED: Final = "%saved"
# Bytes of scratch space per instruction (FASTTRAP_SCRATCH).
CHUNK: Final = 64


@dataclass(slots=True)
class Stepping:
    """A thread that runs a displaced instruction out of line."""

    point: Point
    move: OutOfLine
    chunk: int
    """Address of its scratch code."""
    start: int
    """The start of the copy that runs."""
    trap: int | None
    """The address of the return trap, None if the code jumps back by itself."""
    after: int
    """The address after the original."""
    way_back: int
    """Number of instructions after the copy that were subtracted from the count in advance, because
    they are not the program's."""
    fires: bool
    """Whether the probes after the instruction fire at the return trap."""

    @property
    def end(self) -> int:
        """The address after the copy that runs."""
        return self.start + len(self.move.code)


@dataclass(slots=True)
class _Chunk:
    """Scratch space of one thread for one instruction."""

    target: Target
    slots: Slots
    """The pages that it is from."""
    address: int
    traps: bool | None = None
    """Whether its code fires the probes after the instruction; None: it has no code yet."""


# A thread, and the address of an instruction or of scratch space.
_Key = tuple["Thread", int]


class Steps(ProcessObserver):
    """All threads of a guest that step.

    `fire_after(point, new_pc)` fires the probes after an instruction; `again(thread, address)`
    makes a thread hit an address without the probes before it.
    """

    def __init__(
        self,
        kernel: Processes,
        port: Port,
        fire_after: Callable[[Point, int], None],
        again: Callable[[Thread, int], None],
    ) -> None:
        self._kernel = kernel
        self._port = port
        self._fire_after = fire_after
        self._again = again
        self._stepping: dict[Thread, Stepping] = {}
        self._chunks: dict[_Key, _Chunk] = {}
        self._same: dict[_Key, Stepping] = {}
        """By thread and scratch space: what a thread does in it that is there, whether Python or
        machine code sent it."""
        kernel.exceptions.append(self._exception)
        kernel.watch(self)

    def copy_at(self, address: int) -> bytes | None:
        """Return the copy that begins at an address of scratch space, empty elsewhere in it.

        None: the address is not in scratch space.
        """
        if not any(chunk.address <= address < chunk.address + CHUNK for chunk in self._chunks.values()):
            return None
        return next((one.move.code for one in self._same.values() if one.start == address), b"")

    def of(self, thread: Thread, pc: int) -> Stepping | None:
        """Return the last out-of-line step of a thread, which may have ended meanwhile.

        `pc` is where it is.
        """
        stepping = self._stepping.get(thread)
        if stepping is not None and stepping.chunk <= pc < stepping.chunk + CHUNK:
            return stepping
        return self._same.get((thread, pc & -CHUNK), stepping)

    def describe(self, thread: Thread, point: Point, move: OutOfLine) -> Run | None:
        """Describe what `begin` has just done; None: it is not the same each time."""
        chunk = self._chunks.get((thread, point.address))
        if chunk is None:
            return None
        stepping = self._same.get((thread, chunk.address))
        if stepping is None or stepping.fires is not bool(point.after):
            return None
        operations: list[NativeOperation] = []
        if move.scratch:
            operations += [Deposit(move.scratch, self.saved_at(stepping)), Set(move.scratch, "", stepping.after)]
        operations += self._kernel.engine.discounting(1 + stepping.way_back, stepping.way_back)
        return Run((*operations, Set(self._kernel.isa.registers.pc, "", stepping.start)))

    def describe_fault(self, thread: Thread, pc: int) -> Run | None:
        """Describe what `faulted` does with a thread whose copy has faulted at a pc; None: nothing."""
        stepping = self.of(thread, pc)
        if stepping is None or not stepping.chunk <= pc < stepping.chunk + CHUNK:
            return None
        back = Set(self._kernel.isa.registers.pc, "", stepping.point.address)
        return Run(
            self.restoring(stepping, *self._kernel.engine.discounting(-stepping.way_back, -stepping.way_back), back)
        )

    def restoring(self, stepping: Stepping, *operations: NativeOperation) -> tuple[NativeOperation, ...]:
        """Return operations with those that restore the scratch register, if there is one."""
        scratch = stepping.move.scratch
        if not scratch:
            return operations
        return Load(_SAVED, "", self.saved_at(stepping), _WORD), *operations, Set(scratch, _SAVED)

    def saved_at(self, stepping: Stepping) -> int:
        """Return the address of the scratch register's saved value."""
        return stepping.chunk + self._port.saved_offset(stepping.move)

    def _restore(self, stepping: Stepping) -> None:
        """Restore the scratch register's value."""
        if stepping.move.scratch:
            saved = stepping.point.target.code.read(self.saved_at(stepping), _WORD)
            self._kernel.cpu.write_register(stepping.move.scratch, int.from_bytes(saved, "little"))

    def forget(self, thread: Thread) -> None:
        """Remove a step that has ended by itself."""
        self._stepping.pop(thread, None)

    def has_room(self, thread: Thread, point: Point) -> bool:
        """Return whether there is scratch space, or none is available.

        False: the hit must be repeated.
        """
        return (thread, point.address) in self._chunks or point.target.slots.ready()

    def begin(self, thread: Thread, point: Point, move: OutOfLine) -> int:
        """Make the copy of an instruction run in the thread's scratch space."""
        cpu, port = self._kernel.cpu, self._port
        chunk = self._chunk(thread, point)
        if chunk is None:
            return self._no_scratch(point)
        at, after, fires = chunk.address, point.address + move.length, bool(point.after)
        if chunk.traps is not fires:
            chunk.slots.fill(at, port.chunk(move, at, after))
            chunk.traps = fires
        trapped = fires or port.always_steps
        start = at + (port.second_copy(move) if trapped else 0)
        trap = at + port.trap_offset(move) if trapped else None
        # Only the program's instructions are counted.  The breakpoint has been counted, and the copy will be: one of
        # them is subtracted.  Without a return trap the return of the thread is not noticed, so the instructions that
        # bring it back are subtracted now as well: the jump, and before it the load of the scratch register.
        way_back = 0 if trapped else port.copies + bool(move.scratch)
        cpu.discount(1 + way_back, way_back)
        stepping = Stepping(point, move, at, start, trap, after, way_back, fires)
        self._stepping[thread] = self._same[thread, at] = stepping
        if move.scratch:
            saved = cpu.read_register(move.scratch)
            point.target.code.write(self.saved_at(stepping), saved.to_bytes(_WORD, "little"))
            cpu.write_register(move.scratch, after)
        cpu.pc = start
        return EXECUTED

    def _chunk(self, thread: Thread, point: Point) -> _Chunk | None:
        """Return a thread's scratch space for an instruction; None: none is available."""
        key = thread, point.address
        if key not in self._chunks:
            try:
                self._chunks[key] = _Chunk(point.target, point.target.slots, point.target.slots.take())
            except BadAddressError:
                return None
        return self._chunks[key]

    def _no_scratch(self, point: Point) -> int:
        """Remove the tracepoint permanently: no scratch space is available."""
        point.target.patcher.remove(point.tracepoint)
        self._kernel.cpu.pc = point.address
        return EXECUTED

    # -- the ends of a step

    def _exception(self, number: int, pc: int) -> bool:
        """Take the return trap of an ISA where it is not a breakpoint; False: it is not ours."""
        thread = self._kernel.current
        # The pc is after the trap.
        stepping = self.of(thread, pc - 1) if thread is not None else None
        if stepping is None or number != self._port.return_trap or stepping.trap is None or pc <= stepping.trap:
            return False
        assert thread is not None
        self.returned(thread, stepping)
        return True

    def returned(self, thread: Thread, stepping: Stepping) -> int:
        """Take the return trap (fasttrap_return_probe)."""
        cpu, move = self._kernel.cpu, stepping.move
        self._stepping.pop(thread, None)
        cpu.discount(1)  # the trap itself
        # Only now, because until here a signal's frame had to show the program's value.  If the register's value has
        # changed, the instruction has written it, and its value stays.
        if move.scratch and cpu.read_register(move.scratch) == stepping.after:
            self._restore(stepping)
        if stepping.fires:
            # The probes see the pc of their instruction; FreeBSD's return trap leaves it in the scratch space.
            cpu.pc = stepping.point.address
            self._fire_after(stepping.point, stepping.after)
        cpu.pc = stepping.after
        return EXECUTED

    def _back(self, thread: Thread, stepping: Stepping) -> None:
        """Put a thread back at the original instruction, as if it had not begun to step."""
        cpu = self._kernel.cpu
        self._stepping.pop(thread, None)
        cpu.discount(-stepping.way_back, -stepping.way_back)
        self._restore(stepping)
        cpu.pc = stepping.point.address

    def _finish(self, thread: Thread, stepping: Stepping) -> None:
        """Move a thread whose copy has run to the address after the original instruction."""
        cpu = self._kernel.cpu
        self._stepping.pop(thread, None)
        self._restore(stepping)
        if stepping.trap is None:
            cpu.discount(-stepping.way_back, -stepping.way_back)  # it will not jump back
        cpu.pc = stepping.after

    def stop(self, thread: Thread) -> None:
        """Forget the step of a thread that has ended, or runs another program."""
        if thread is self._kernel.current and (stepping := self._in_chunk(thread)) is not None:
            self._kernel.cpu.discount(-stepping.way_back, -stepping.way_back)  # it will not jump back
        self._stepping.pop(thread, None)
        # Its pc stays in the scratch space, and this is called again when the thread has ended.
        if any(other is thread for other, _ in self._same):
            self._same = {key: stepping for key, stepping in self._same.items() if key[0] is not thread}
            self._kernel.traps.changed()

    def _in_chunk(self, thread: Thread) -> Stepping | None:
        """Return the step of the current thread, None if its pc is no longer in the scratch space."""
        pc = self._kernel.cpu.pc
        stepping = self.of(thread, pc)
        return stepping if stepping is not None and stepping.chunk <= pc < stepping.chunk + CHUNK else None

    # -- events of threads

    def faulted(self, thread: Thread, info: SignalInfo) -> SignalInfo:
        """Put the thread back on the original instruction, whose copy has faulted.

        A copy that has run is behind it: the program has set its own trap flag.
        """
        stepping = self._in_chunk(thread)
        if stepping is None:
            return info
        cpu, at = self._kernel.cpu, self._kernel.cpu.pc
        if at != stepping.end:
            self._back(thread, stepping)
        elif stepping.trap is None:
            self._finish(thread, stepping)
        else:
            cpu.discount(-1)  # the trap is not executed
            self.returned(thread, stepping)
        return replace(info, address=cpu.pc) if info.address == at else info

    def signalled(self, thread: Thread) -> None:
        """Make a signal's frame show the program itself, not the scratch space.

        It shows the program before the displaced instruction, or after it.
        """
        stepping = self._in_chunk(thread)
        if stepping is None:
            return
        if self._kernel.cpu.pc != stepping.start:
            self._finish(thread, stepping)
            return
        self._back(thread, stepping)
        self._again(thread, stepping.point.address)

    def may_be_interrupted(self, thread: Thread) -> bool:
        """Make a signal wait until the copy has run: its frame must not show the scratch space."""
        stepping = self._in_chunk(thread)
        if stepping is None:
            return True
        if thread.call_name and self._kernel.cpu.pc == stepping.end:
            # A system call out of line was interrupted: it has ended.
            self._finish(thread, stepping)
            return True
        return False

    def thread_ended(self, thread: Thread) -> None:
        """Forget a thread's scratch space."""
        self.stop(thread)
        for key in [key for key in self._chunks if key[0] is thread]:
            chunk = self._chunks.pop(key)
            if chunk.target.live:
                chunk.slots.give_back(chunk.address)

    def born(self, maker: Thread, thread: Thread) -> None:
        """Make a thread that was created out of line begin where its creator continues.

        The scratch space belongs to its creator.
        """
        stepping = self._in_chunk(maker)
        if stepping is not None:
            self._kernel.set_pc(thread, stepping.after)
