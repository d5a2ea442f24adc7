"""Unicorn behind one class, which joins the parts of one CPU.

| part | content |
| --- | --- |
| `cpu` (`emu.engine.qemu.cpu`) | registers, contexts, QEMU's functions |
| `memory` (`emu.engine.memory.memory`) | RAM, and the way from a virtual address to it |
| `counter` (`emu.engine.time.counter`) | the exact count of instructions |
| `code` (`emu.engine.code`) | code is written, and its translation is forgotten |
| `handlers` (`emu.engine.handlers`) | breakpoints, other exceptions, system calls |
| `spaces` (`emu.engine.address_spaces`) | the address spaces that the host keeps |
| `running` (`emu.engine.run`) | run, step, watch, stop |
| `emulated` (`emu.engine.emulated_instructions`) | instructions that the host serves: counters, random numbers |
| `emu.engine.native_callbacks`, `emu.engine.python_callbacks` | what Unicorn calls, in machine code and in Python |

Unicorn's abilities and limits shape these files; the facts are documented where they are used.
Rules for additions to them:

* no per-instruction hook, no memory hook, no `timeout=`, no `until` inside code: each costs all
  guests their speed or exactness;
* an exception never leaves a callback: it is stored, the run is stopped, and `run` raises it;
* code is written by `write_code` alone, which also makes Unicorn forget what it translated;
* no code here names an ISA: the particulars of each are in `Isa.unicorn`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Final

from emu.displaced.plans import Plan
from emu.engine import native_callbacks, python_callbacks
from emu.engine.address_spaces import Spaces
from emu.engine.code import Code
from emu.engine.emulated_instructions import InstructionEmulator
from emu.engine.handlers import Handlers
from emu.engine.hits.plan_encoding import Adjust, Encoder, Windows
from emu.engine.hits.tracepoints import Tracepoints
from emu.engine.memory.memory import GuestMemory, HostMemory, Memory
from emu.engine.memory.pages import AddressSpace, PageMap, Window
from emu.engine.qemu import alignment, exit_checks, exits, helpers, hooks, inline_caches, jump_cache, rewriters
from emu.engine.qemu.code_hooks import CodeHooks
from emu.engine.qemu.corrections import Corrected
from emu.engine.qemu.cpu import NOWHERE, Cpu
from emu.engine.qemu.hooks import Hooks
from emu.engine.qemu.inlined_count import MARKER
from emu.engine.qemu.sticky_flags import Accrued
from emu.engine.qemu.temporaries import Temporaries, context
from emu.engine.qemu.tlb import SoftTlb
from emu.engine.qemu.ud_hooks import Refusals
from emu.engine.run import Running
from emu.engine.state import BLOCKS, NO_CLOCK, ClockState, Word
from emu.engine.stops import Reached, Stops
from emu.engine.time.counter import Counter
from emu.isa.base import Isa
from emu.support.words import BadAddressError

_ON_INSTRUCTION: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class Engine:
    """One emulated CPU and its RAM.

    `handlers` passes breakpoints and every other synchronous exception on to its `taker`, which the
    engine's user sets.  With `pages` the host keeps the address space, otherwise the guest's page
    tables define it.  System calls go to the guest's vector, unless `on_system_call` serves them:
    it is called with the pc after the instruction.  `accelerated` says whether the callbacks are
    machine code.  `blocks`: the number of blocks whose sizes are remembered, a power of two;
    whenever code is written, the engine forgets all of them.  `inlined`: the count is written into
    the translated blocks (`emu.engine.qemu.inlined_count`) where that is possible.  `shared`: the
    memory of another engine, whose RAM this one uses too, if the host keeps the address space.
    """

    def __init__(
        self,
        isa: Isa,
        ram_size: int,
        *,
        pages: AddressSpace | None = None,
        on_system_call: Callable[[], None] | None = None,
        accelerated: bool | None = None,
        blocks: int = BLOCKS,
        inlined: bool = True,
        shared: Memory | None = None,
    ) -> None:
        self.isa = isa
        self.accelerated = native_callbacks.available() if accelerated is None else accelerated
        self.cpu = Cpu(isa)
        self.words = self.cpu.words
        self.memory: Memory = (
            GuestMemory(ram_size, isa, self.words) if pages is None else HostMemory(ram_size, pages, shared)
        )
        self.cpu.map_ram(self.memory.pointer, ram_size)
        written = self.accelerated and inlined and rewriters.runs(rewriters.INLINE_COUNTS)
        self.counter = Counter(isa, self.cpu, self.memory, blocks, inlined=written)
        self._discounting: dict[tuple[int, int], tuple[Adjust, ...]] = {}
        self._state = self.counter.state
        self._hooks = Hooks(self.cpu, ctypes.addressof(self.counter.state_array))
        self._plans = Encoder(isa, self.cpu.env)
        self.tracepoints = Tracepoints(self._plans, *self._who())
        self.handlers = Handlers(isa, self.cpu, self.memory, self.counter, self.tracepoints, on_system_call)
        self._code_hooks = CodeHooks(*self._translation(), self._corrected(), self._aligned())
        self.code = Code(self.cpu, self.memory, self.counter, self._code_hooks, self.handlers.fail)
        self._pc = isa.registers.slots[isa.registers.pc]
        self._windows = Windows()
        # These five are called at every hit that Python serves: a method around each would cost as much as it does.
        self.load, self.store, self.read = self.memory.load, self.memory.store, self.memory.read
        self.read_register, self.write_register = self.cpu.read_register, self.cpu.write_register
        self._tlb: SoftTlb | None = None
        if isinstance(self.memory, HostMemory):
            self._tlb = SoftTlb(self.cpu, self.memory, NOWHERE, self._state)
            self.cpu.on_public_write = self._tlb.jumps.forget
        self.spaces = Spaces(self.memory, self._tlb, self._state, self.counter.forget_user_blocks)
        self.callbacks = self._install_callbacks(delivers=on_system_call is None)
        now = python_callbacks.Interrupted(self.cpu, self._state, self.handlers)
        self.emulated = InstructionEmulator(
            isa, self.cpu, self.memory, self.counter, now, programs_only=on_system_call is not None
        )
        self._exits = self.callbacks.emulated or exits.interpreted(self._code_hooks.choose, self.emulated.found)
        exits.install(self.cpu, *self._exits)
        mark = exit_checks.mark(self.cpu)
        if mark is not None:
            self._code_hooks.leave_out_tests(mark)
        self.handlers.emulator = self.emulated
        self.fill_hook = 0
        """Unicorn's handle of the hook for pages; 0: there is none."""
        if self._tlb is not None:
            self.fill_hook = self._hooks.add(hooks.TLB_FILL, self.callbacks.fill or self._tlb.callback)
        self.running = Running(
            self.cpu,
            self.counter,
            self.code,
            self._code_hooks,
            self.handlers,
            self.emulated,
            self._hooks,
            self.memory,
            self._tlb,
        )
        if isinstance(pages, PageMap):
            self._follow(pages)
        self._show_windows()
        isa.unicorn.prepare(self.cpu)

    def _follow(self, pages: PageMap) -> None:
        """Show new pages to machine code, after the engines that already use these pages."""
        others = pages.on_change

        def changed() -> None:
            others()
            self._show_windows()

        pages.on_change = changed

    def run(self, soft: int | None = None, hard: int | None = None, clock: ClockState = NO_CLOCK) -> bool:
        """Run until `stop`, until the CPU waits for an interrupt, or to a deadline (`Running.run`)."""
        return self.running.run(soft, hard, clock)

    def step(self) -> bool:
        """Execute one instruction (`Running.step`)."""
        return self.running.step()

    def stop(self) -> None:
        """End the current run before its next block (`Running.stop`)."""
        self.running.stop()

    def write_code(self, address: int, data: bytes) -> None:
        """Write code, of which Unicorn then forgets its translation (`Code.write`)."""
        self.code.write(address, data)

    def write_vector(self, number: int, low: int, high: int) -> None:
        """Set a vector register that has 128 bits."""
        self.cpu.write_vector(number, low, high)

    def discount(self, instructions: int, executed: int = 0) -> None:
        """Subtract instructions from the count (`Counter.discount`)."""
        self.counter.discount(instructions, executed)

    def _install_callbacks(self, *, delivers: bool) -> native_callbacks.Callbacks | python_callbacks.Callbacks:
        model, handlers = self.isa.unicorn, self.handlers
        callbacks: native_callbacks.Callbacks | python_callbacks.Callbacks
        if self.accelerated:
            callbacks = native_callbacks.Callbacks(
                self.cpu,
                self.counter,
                handlers,
                self.memory,
                self._windows,
                self.tracepoints,
                self.code.hooked,
                self._code_hooks,
                self._tlb,
                delivers=delivers,
            )
        else:
            callbacks = python_callbacks.Callbacks(self.cpu, self.counter, handlers, delivers=delivers)
        if isinstance(callbacks, native_callbacks.Callbacks):
            self.code.watcher = callbacks.watched
            self.tracepoints.on_set = self.code.serve
            if rewriters.runs(rewriters.INLINE_CACHES):
                self._state[Word.INVALIDATIONS] = jump_cache.invalidations(self.cpu) or 0
        add = self._hooks.add
        add(hooks.BLOCK, callbacks.block, data=MARKER)
        hook = callbacks.code_hook or self._code_hooks.callback
        # Without the marker no call of the hook is known, so none is made shorter.
        marker = inline_caches.MARKER if rewriters.runs(rewriters.INLINE_CACHES) else None
        self._code_hooks.attach(partial(add, hooks.CODE, hook, data=marker))
        add(hooks.EXCEPTION, callbacks.trap)
        if callbacks.invalid:
            add(hooks.INVALID, callbacks.invalid)
        if callbacks.refused and self.isa.refused:
            refused, code_hooks, words = callbacks.refused, self._code_hooks, self.counter.address
            self.code.refusals = Refusals(
                self.isa.refused,
                partial(code_hooks.refuse, function=refused, data=words),
                partial(code_hooks.remove, function=refused),
            )
        if model.system_call_instruction is not None:
            system_call = callbacks.system_call or _ON_INSTRUCTION(lambda _uc, _words: handlers.system_call())
            add(hooks.INSTRUCTION, system_call, instruction=model.system_call_instruction)
        return callbacks

    @property
    def watched(self) -> bool:
        """Whether a watcher is called before each instruction."""
        return self.running.watched

    @property
    def hosted(self) -> bool:
        """Whether the host keeps the address spaces; else the guest has page tables."""
        return self._tlb is not None

    def discounting(self, instructions: int, executed: int = 0) -> tuple[Adjust, ...]:
        """Return the effect of `discount` as operations for machine code."""
        known = self._discounting.get((instructions, executed))
        if known is None:
            changes = ((Word.TOTAL, -instructions), (Word.DISCOUNTED, executed))
            known = tuple(Adjust(self.counter.address + 8 * word, change) for word, change in changes if change)
            self._discounting[instructions, executed] = known
        return known

    def _translation(self) -> tuple[Accrued | None, Temporaries | None]:
        """Return what is done for the guest's CPU when its instructions are translated."""
        model = self.isa.unicorn
        accrued = Accrued(model.accruing, self.cpu.env, self.memory) if model.accruing else None
        return accrued, Temporaries(self.cpu.handle, model.leaking) if model.leaking else None

    def _corrected(self) -> Corrected | None:
        """Return what is done when instructions are executed that Unicorn gets wrong."""
        rules = helpers.corrections(self.isa.unicorn)
        return Corrected(rules, self.cpu, self.memory, self.handlers.correct) if rules else None

    def _aligned(self) -> Callable[[int], None] | None:
        """Return what notes whether the instruction to be translated needs an aligned operand."""
        rule, here = self.isa.unicorn.aligned, context(self.cpu.handle)
        if rule is None or not alignment.runs(self.isa.unicorn):
            return None

        def note(address: int) -> None:
            try:
                wanted = rule(lambda at: self.memory.read(at, 1)[0], address)
            except BadAddressError:
                wanted = False
            alignment.PENDING.value = here if wanted else 0

        return note

    def _who(self) -> tuple[int, int]:
        """Return the addresses of the words with the current address space and the current thread."""
        state = ctypes.addressof(self.counter.state_array)
        space, thread = (state + 8 * word for word in (Word.SPACE, Word.THREAD))
        if isinstance(self.memory, GuestMemory):
            space = self.cpu.env + 8 * self.isa.registers.slots[self.isa.registers.root]
        return space, thread

    def show_window(self, window: Window) -> None:
        """Register a range of kernel addresses that is contiguous in RAM.

        Host and machine code then reach it without a walk through the page tables.  The guest must
        have its own kernel.
        """
        assert isinstance(self.memory, GuestMemory)
        self.memory.show(window)
        self._show_windows()

    def _show_windows(self) -> None:
        self._windows.set(self.memory.windows(), self.memory.pointer)

    def plan(self, plan: Plan) -> int:
        """Return the answer that makes machine code execute a plan; 0: not possible.

        If machine code cannot reach the plan's memory, `TrapTaker.late` is called; all registers
        except the pc are unchanged then.
        """
        return self._plans.encode(plan) if self.accelerated else 0

    @property
    def pc(self) -> int:
        """The program counter. A callback may set it; execution then continues there."""
        return int(self.words[self._pc])

    @pc.setter
    def pc(self, value: int) -> None:
        self.words[self._pc] = value

    @property
    def instructions(self) -> int:
        """Instructions executed so far, without the one at pc."""
        return self.counter.instructions

    def note_thread(self, number: int) -> None:
        """Note which thread runs, if the host keeps the threads."""
        self._state[Word.THREAD] = number

    def find_thread_at(self, physical: int) -> None:
        """Take what a guest's own kernel has at a physical address for the thread that runs.

        Eight bytes there are read, also where pointers have four: the others must not change.
        """
        self.tracepoints.find_thread_at(self.memory.pointer + physical)

    def observe(self, kind: int, callback: object, begin: int = 1, end: int = 0) -> int:
        """Add a hook of Unicorn's (UC_HOOK_*) for [begin, end], and return its handle.

        It is for those who look at every access or block (`emu.engine.events.access_observer`):
        each such hook makes all code slow.
        """
        return self._hooks.add(kind, callback, begin, end)

    def observe_no_more(self, handle: int) -> None:
        """Remove a hook of `observe`."""
        self._hooks.remove(handle)

    def stops(self, reached: Reached) -> Stops:
        """Return what stops the CPU before chosen instructions, for a debugger (`Stops`)."""
        return Stops(self.cpu, self.counter, self.code, self._code_hooks, self.running, self._hooks, reached)

    def interrupt(self) -> None:
        """Deliver the clock interrupt to the guest's vector, between runs, if it is accepted."""
        self.cpu.interrupt()
