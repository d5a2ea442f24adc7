"""Running a CPU: deadlines, single steps, what ends a run, and what it raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from emu.engine.errors import GuestCrashError, PageFaultError, shut_down
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.engine.state import NEVER, NO_CLOCK, PREPAID, ClockState, Word
from emu.support.words import BadAddressError

if TYPE_CHECKING:
    from emu.engine.code import Code
    from emu.engine.emulated_instructions import InstructionEmulator
    from emu.engine.handlers import Handlers
    from emu.engine.memory.memory import Memory
    from emu.engine.qemu.code_hooks import CodeHooks
    from emu.engine.qemu.cpu import Cpu
    from emu.engine.qemu.hooks import Hooks
    from emu.engine.qemu.tlb import SoftTlb
    from emu.engine.time.counter import Counter
import ctypes
from typing import Final

from emu.engine.qemu.hooks import ACCESS, WRITE, Hooks
from emu.support.words import WORD_MASK

# (whether it writes, physical address, size in bytes, value written)
Accessed = Callable[[bool, int, int, int], object]

_HOOK: Final = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
)


class Watch:
    """One watcher, and the hook of what is accessed meanwhile."""

    def __init__(self, watcher: Callable[[], bool], accessed: Accessed, hooks: Hooks) -> None:
        self.watcher = watcher

        def access(_uc: int, kind: int, address: int, size: int, value: int, _data: int) -> None:
            accessed(kind == WRITE, address, size, value & WORD_MASK >> 64 - 8 * size)

        self._hooks = hooks
        self._handle = hooks.add(ACCESS, _HOOK(access))

    def end(self) -> None:
        """Remove the hook."""
        self._hooks.remove(self._handle)


class Running:
    """The runs of one CPU, and the ways to end one.

    `tlb`: where the host keeps the address space, the misses that end a run with
    `emu.engine.errors.PageFaultError`.
    """

    def __init__(
        self,
        cpu: Cpu,
        counter: Counter,
        code: Code,
        code_hooks: CodeHooks,
        handlers: Handlers,
        emulated: InstructionEmulator,
        hooks: Hooks,
        memory: Memory,
        tlb: SoftTlb | None,
    ) -> None:
        self._cpu = cpu
        self._pc_slot = cpu.isa.registers.slots[cpu.isa.registers.pc]
        self._counter = counter
        self._state = counter.state
        self._code = code
        self._code_hooks = code_hooks
        self._handlers = handlers
        self._emulated = emulated
        self._hooks = hooks
        self._memory = memory
        self._tlb = tlb
        self._watch: Watch | None = None
        self._steps = False
        self.on_no_code: Callable[[int], bool] = lambda _pc: False
        """Is asked where there is no code to execute: whether the run goes on, at the pc."""
        self.runs = 0
        """How many runs there were: each has deadlines of its own."""
        self.between: Callable[[], object] | None = None
        """Is called once, when the run that `leave_for` ends has ended; then the run goes on."""

    @property
    def _pc(self) -> int:
        return int(self._cpu.words[self._pc_slot])

    def run(self, soft: int | None = None, hard: int | None = None, clock: ClockState = NO_CLOCK) -> bool:
        """Run until `stop`, until the CPU waits for an interrupt, or to a deadline.

        `soft` is checked in user mode, `hard` anywhere, both at the start of blocks.  With `clock`
        both are times of that clock: they move by the instructions that it hides meanwhile, but the
        run may also end before them.  Returns True if the CPU waits.  Raises the exception of a
        callback, `emu.engine.errors.PageFaultError` if the host keeps the address space, and
        `GuestCrashError` if the CPU cannot continue.
        """
        # A time may be long past: the clock can be advanced further than the number of instructions ever executed.
        soft = NEVER if soft is None else min(NEVER, max(0, soft + PREPAID))
        hard = NEVER if hard is None else min(NEVER, max(0, hard + PREPAID))
        if self._watch is not None:
            waits = self._run_watched(self._watch, soft, hard)
            if waits is not None:
                return waits
        self._emulate(soft, hard, clock=clock)
        while self._halted():
            if not self._emulated.take():
                return True
            self._handlers.raise_failure()
            if self._state[Word.STOPPED]:  # its exception ends the run
                return False
            self._go_on()
        if not self._state[Word.STOPPED]:
            raise shut_down(self._pc)
        return False

    def watch(self, watcher: Callable[[], bool], accessed: Accessed) -> None:
        """Call `watcher` before each instruction, between two of them, until it returns False.

        `accessed` is called for each access to memory meanwhile.  It begins with the next `run`: a
        run under way ends before its next block.  Instructions then take some 50 us each.
        """
        self._watch = Watch(watcher, accessed, self._hooks)
        self.stop()

    @property
    def stepped(self) -> bool:
        """Whether the latest run was a step: blocks have one instruction then."""
        return self._steps

    @property
    def watched(self) -> bool:
        """Whether a watcher is called before each instruction."""
        return self._watch is not None

    def _run_watched(self, watch: Watch, soft: int, hard: int) -> bool | None:
        """Run while the watcher wants to be called.

        Returns whether the CPU waits; None if nothing has stopped the run.
        """
        self._state[Word.HARD] = hard
        while watch.watcher():
            self._emulate(soft, hard, count=1)
            if self._halted():
                if not self._emulated.take():
                    return True
                self._handlers.raise_failure()
            if self._state[Word.STOPPED] or not self._state[Word.HARD]:
                return False
            soft = min(soft, self._state[Word.SOFT])
        watch.end()
        self._watch = None
        return None if self._state[Word.HARD] else False  # the watcher may have called `stop`

    def step(self) -> bool:
        """Execute one instruction, or one repetition of a string instruction; return as `run`.

        An engine that steps should only step: all code is translated again when stepping begins or
        ends.
        """
        self._emulate(NEVER, NEVER, count=1)
        return self._halted() and not self._emulated.take()

    def _halted(self) -> bool:
        """Return whether the CPU has stopped to wait for an interrupt, and clear the mark of it."""
        halted = bool(self._cpu.halted.value)
        self._cpu.halted.value = 0
        return halted

    def _emulate(self, soft: int, hard: int, count: int = 0, clock: ClockState = NO_CLOCK) -> None:
        """Run Unicorn, and raise its errors. `count` 0: it runs until it is stopped."""
        if bool(count) is not self._steps:
            # Forget the translated blocks, whose size (one instruction or many) Unicorn would not check.
            self._cpu.forget_blocks()
            self._steps = bool(count)
            self._code_hooks.count_all(counted=self._steps)
        self.runs += 1
        self._state[Word.SOFT], self._state[Word.HARD] = soft, hard
        self._state[Word.NEXT] = 0 if self._state[Word.AT_BLOCK] else min(soft, hard)
        self._state[Word.CLOCK], self._state[Word.HIDDEN], self._state[Word.SKIPPED] = clock
        self._go_on(count)

    def _go_on(self, count: int = 0) -> None:
        """Run Unicorn with the current deadlines."""
        while self._run_once(count):
            pass

    def _run_once(self, count: int) -> bool:
        """Run Unicorn; True: run it again, because it only stopped before an instruction."""
        self._counter.refresh()
        self._state[Word.STOPPED] = 0
        if self._tlb is not None:
            self._tlb.missed = None
        self._code.running = True
        crash = self._cpu.start(self._pc, count)
        self._code.running = False
        self._handlers.raise_failure()
        self._counter.settle()
        if self.between is not None and not crash:
            between, self.between = self.between, None
            between()
            return not count
        if not crash:
            return False
        if self._tlb and self._tlb.change:
            change, self._tlb.change = self._tlb.change, None
            change(self._pc)
            return True
        if self._tlb and self._tlb.missed:
            address, access = self._tlb.missed
            before = address // PAGE == self._pc // PAGE - 1
            if access is Access.EXECUTE and not self._pc % PAGE and self._emulated.take(empty=before):
                self._handlers.raise_failure()
                return not self._state[Word.STOPPED] and not count
            if self._tlb.failure:
                failure, self._tlb.failure = self._tlb.failure, None
                raise failure
            if access is Access.EXECUTE and self.on_no_code(self._pc):
                return not count
            if access is Access.EXECUTE:
                page = address // PAGE
                if page <= self._pc // PAGE:
                    address = self._pc
                elif self._state[Word.STOP_AT] != NEVER or not self._run_before(page, count):
                    address = page * PAGE
                else:
                    return not (count or self._state[Word.STOPPED] or self._cpu.halted.value)
            raise PageFaultError(address, access, self._pc)
        raise GuestCrashError(f"the CPU cannot continue at {self._pc:#x}: {crash}", self._pc)

    def _run_before(self, page: int, count: int) -> bool:
        """Execute what is before the instruction that ends in a page that cannot be fetched.

        Unicorn translates a block at once, so it has executed nothing of it.  False: nothing is
        before that instruction.
        """
        start = at = self._pc
        try:
            code = self._memory.read(start, page * PAGE - start)
        except BadAddressError:  # it can be executed, but not read
            return False
        for part in self._memory.places(start, len(code)):
            self._cpu.forget_code(*part)  # it may have been translated before the page changed
        while length := self._cpu.isa.instruction_length(code[at - start :]):
            at += length
            if count:
                break
        if at == start:
            return False
        self._state[Word.STOP_AT] = at
        try:
            self._run_once(count)
        finally:
            self._state[Word.STOP_AT] = NEVER
        if self._pc == at:
            self._cpu.halted.value = 0
        return self._pc != start or bool(self._state[Word.STOPPED])

    def stop(self) -> None:
        """End the current run before its next block; between two runs this does nothing.

        It sets a deadline that has passed. emu_stop in a code hook would stop before the hooked
        instruction, whose hook would be called again.
        """
        self._state[Word.HARD] = self._state[Word.NEXT] = 0

    def stop_in_user_mode(self) -> None:
        """End the current run before its next block of user mode."""
        self._state[Word.SOFT] = self._state[Word.NEXT] = 0

    def end_earlier(self, soft: int) -> None:
        """End the current run in user mode at a count, if its deadline is later."""
        self._state[Word.SOFT] = min(self._state[Word.SOFT], max(0, soft + PREPAID))
        self._state[Word.NEXT] = min(self._state[Word.NEXT], self._state[Word.SOFT])

    def leave_for(self, between: Callable[[], object]) -> None:
        """Do something before the instruction of the current code hook, outside of all blocks.

        The run goes on then, with its deadlines; the hook will be called again.
        """
        self.between = between
        self._cpu.stop()

    def leave(self) -> None:
        """End the current run now; from a trap or a system call."""
        self._state[Word.STOPPED] = 1
        self._state[Word.NEXT] = 0
        self._cpu.stop()
