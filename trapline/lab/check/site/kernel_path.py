"""Checks of kernel sites on the guest's own trap path, in a booted kernel.

Two kernels are booted alike.  One executes the instruction; the other takes the breakpoint as an
exception, saves a trap frame, calls `dtrace_invop`, emulates the instruction in its own assembly,
and returns.  The stack pointer must point into a stack, because the kernel's vector uses it;
everything else is as awkward as on the host path.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, Final

from emu.engine.errors import EngineError, GuestCrashError
from emu.engine.handlers import TrapTaker, WrappedTaker
from emu.engine.state import DELIVER
from emu.guest.base import GuestError
from emu.guest.kernel.guest import KernelGuest
from emu.guest.kernel.trap_path import TrapPath
from emu.guest.modules import Module
from emu.isa import ISAS
from providers import fbt
from trapline.lab.check.cpu.listener import Listener
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.cpu.states import State, general_registers, pool
from trapline.lab.check.site.compare import PYTHON, Difference, Divergence, Outcome, SiteResult
from trapline.lab.check.site.subject import Subject

# The largest number of instructions of the vector, the stub and the return.
_STEPS: Final = 4_000
_RAM: Final = 32 << 20
# Bytes from the top of the stack to the stack pointers of states.
_DEPTH: Final = 1_024
# Size of the stack below the stack pointers that has a content before the instruction.
_WINDOW: Final = 512
# Stands for a frame pointer near the stack pointer.
_NEAR: Final = 1


class _Faults(WrappedTaker):
    """Notes exceptions, and leaves them to the guest's kernel."""

    def __init__(self, inner: TrapTaker) -> None:
        super().__init__(inner)
        self.faults: list[int] = []

    def trap(self, number: int) -> int:
        """Note an exception."""
        self.faults.append(number)
        return DELIVER


class KernelPathChecker:
    """Checks kernel sites on the guest's own trap path.

    Raises `emu.guest.base.GuestError` if the kernel does not boot.
    """

    def __init__(self, subject: Subject, rules: Rules, states: int) -> None:
        self._isa = subject.isa
        self._names = general_registers(self._isa)
        self._states = states
        self.executed: Counter[str] = Counter()
        """Site-states that were tried: all of them by Python (`SiteChecker.executed`)."""
        self._plain, self._patched = (
            KernelGuest(self._isa, image=subject.path, trap_path=TrapPath.GUEST, ram=_RAM, patcher=rules.patcher)
            for _ in range(2)
        )
        for guest in (self._plain, self._patched):
            guest.boot()
        returns = self._patched.image.symbol("dtrace_invop_return").value
        self._patched.engine.code.on_code(returns, self._returned)
        framework = Listener()
        self._provider = fbt.FBT(
            framework,
            self._patched.patcher,
            self._patched.traps,
            self._isa,
            fidelity=rules.fidelity,
            port=rules.fbt,
        )
        self._provider.provide_module(Module("kernel", self._patched.image.symbols, self._patched.patcher.original))
        self._taker = self._plain.engine.handlers.taker
        self._contexts = [guest.engine.cpu.new_context() for guest in (self._plain, self._patched)]
        self._pristine = bytes(self._plain.engine.memory.ram)
        self._pool = _survivable(self._isa.name)
        self._sp = self._stack_pointer()
        self._somewhere = self._plain.image.symbol("panic").value
        self._stack = self._somewhere.to_bytes(self._isa.word, "little") * (2 * _WINDOW // self._isa.word)
        """The content of the stack: addresses that can be returned to."""

    def _returned(self) -> None:
        """Stop after the return from the trap, which is the next instruction."""
        self._patched.clock.resume(1)
        self._patched.engine.stop()

    def _stack_pointer(self) -> int:
        """Return the approximate place of the states' stack pointers on process 1's kernel stack."""
        sp = self._plain.engine.read_register(self._isa.registers.sp)
        return sp - _DEPTH & ~0xFF

    def check(self, site: CheckSite) -> SiteResult:
        """Check a site on the guest's trap path."""
        record = self._provider.table.find(site.address)
        if record is None:
            return SiteResult(site, Outcome.REFUSED, "no record: another rule's site")
        patcher = self._patched.patcher
        patcher.install(record.tracepoint)
        left_out = 0
        divergence = None
        try:
            for number in range(self._states):
                state = self._pool[((site.address >> 2) + number) % len(self._pool)]
                found = self._differences(site, state)
                if found is None:
                    left_out += 1
                elif found:
                    divergence = self._smallest(site, state, found)
                    break
        finally:
            patcher.remove(record.tracepoint)
            self._clean()
        outcome = Outcome.DIVERGED if divergence else Outcome.AGREED
        states = self._states - left_out
        self.executed[PYTHON] += self._states
        how = str(self._isa.stub.plan(site.code, site.address))
        return SiteResult(site, outcome, how, states, left_out, (divergence,) if divergence else ())

    # -- one state

    def _differences(self, site: CheckSite, state: State) -> tuple[Difference, ...] | None:
        """Return how the two kernels differ after the instruction; None if it faults."""
        for guest, context in zip((self._plain, self._patched), self._contexts, strict=True):
            self._load(guest, context, site, state)
        plain, patched = self._plain.engine, self._patched.engine
        plain.handlers.taker = met = _Faults(self._taker)
        try:
            plain.step()
        except (GuestCrashError, GuestError):
            return None
        if met.faults:
            return None
        sp = self._isa.registers.sp
        owned = max(self._sp + state.registers[sp], plain.read_register(sp))
        return tuple(self._compare(owned, self._come_back(patched, plain.pc)))

    def _load(self, guest: KernelGuest, context: Any, site: CheckSite, state: State) -> None:
        engine = guest.engine
        engine.cpu.restore(context)
        sp = self._sp + state.registers[self._isa.registers.sp]
        engine.memory.write(self._sp - _WINDOW, self._stack)
        for name, value in state.registers.items():
            engine.write_register(name, value)
        engine.write_register(self._isa.registers.sp, sp)
        if state.registers[self._isa.registers.fp] == _NEAR:
            engine.write_register(self._isa.registers.fp, sp + 32)
        if self._isa.registers.link and site.probe == fbt.RETURN:
            engine.write_register(self._isa.registers.link, self._somewhere)
        if self._isa.traps.flags:
            flags = engine.read_register(self._isa.traps.flags)
            mask = self._isa.traps.settable
            engine.write_register(self._isa.traps.flags, flags & ~mask | state.flags & mask)
        engine.pc = site.address

    def _come_back(self, engine: Any, pc: int) -> str:
        """Run until the kernel returns from the trap; return what went wrong if it does not."""
        try:
            engine.run(hard=engine.instructions + _STEPS)
        except (EngineError, GuestError) as error:
            return str(error)
        return "" if engine.pc == pc else f"after at most {_STEPS} instructions"

    def _compare(self, owned: int, trouble: str) -> Iterator[Difference]:
        """Yield what differs; the stack is in use from `owned` on."""
        plain, patched = self._plain.engine, self._patched.engine
        if trouble:
            yield Difference("end", f"pc {plain.pc:#x}", f"pc {patched.pc:#x}: {trouble}")
            return
        for name in self._names:
            before, after = plain.read_register(name), patched.read_register(name)
            if before != after:
                yield Difference(name, f"{before:#x}", f"{after:#x}")
        if self._isa.traps.flags:
            before, after = (engine.read_register(self._isa.traps.flags) for engine in (plain, patched))
            if before != after:
                yield Difference(self._isa.traps.flags, f"{before:#x}", f"{after:#x}")
        start = self._sp - _WINDOW
        stacks = [engine.read(start, len(self._stack)) for engine in (plain, patched)]
        word = self._isa.word
        for at in range(0, len(self._stack), word):
            before_word, after_word = (stack[at : at + word] for stack in stacks)
            # The trap frame was below that: bytes that the instruction did not write have no meaning.
            written = start + at >= owned or before_word != self._stack[at : at + word]
            if written and before_word != after_word:
                yield Difference(f"[sp{start + at - owned:+#x}]", before_word[::-1].hex(), after_word[::-1].hex())

    def _smallest(self, site: CheckSite, state: State, found: tuple[Difference, ...]) -> Divergence:
        """Reduce the state as long as it shows a difference."""
        keep = {self._isa.registers.sp, self._isa.registers.fp}
        for name, value in state.registers.items():
            if value and name not in keep:
                smaller = replace(state, registers={**state.registers, name: 0})
                still = self._differences(site, smaller)
                if still:
                    state, found = smaller, still
        return Divergence("the guest's trap path", state, found)

    def _clean(self) -> None:
        """Make both kernels' memory as it was after the boot."""
        for guest, context in zip((self._plain, self._patched), self._contexts, strict=True):
            guest.engine.cpu.restore(context)
            guest.engine.memory.ram[:] = self._pristine


@cache
def _survivable(isa_name: str) -> tuple[State, ...]:
    """Return the states of the pool with stack pointers that a kernel's vector can use.

    The stack pointer is an offset from the place of the stacks; in every second state the frame
    pointer is near it.
    """
    isa = ISAS[isa_name]
    kept = isa.traps.kept
    states = []
    for number, state in enumerate(pool(isa_name)):
        draw = random.Random(number)  # noqa: S311  the same states in every run
        registers = {name: value for name, value in state.registers.items() if name not in kept}
        registers[isa.registers.sp] = 16 * draw.randrange(32)
        if number % 2:
            registers[isa.registers.fp] = _NEAR
        states.append(replace(state, registers=registers))
    return tuple(states)
