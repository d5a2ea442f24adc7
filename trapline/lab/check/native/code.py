"""Machine code that tries one instruction in many states, on the plain CPU and on the patched one.

`trapline.lab.check.native.cpu_loop` executes; here the results are compared.  A state in which both
have the same result is done.  Any other event (a difference, an exception that is not the
breakpoint's, unknown code) ends the batch: Python tries that state.
"""

from __future__ import annotations

from emu.engine.qemu.block_code import BlockCode
from emu.engine.qemu.block_layout import BlockLayout
from emu.engine.qemu.library import Library
from emu.engine.state import NEVER, Word
from emu.isa.base import Isa
from emu.native.builder import Function, Module
from emu.native.operations import Value
from trapline.lab.check.native.cpu_loop import VECTOR, RunningCode, each_range
from trapline.lab.check.native.memory_code import MemoryCode
from trapline.lab.check.native.trial import BatchBlock, Outcome, TrialBlock


class TrialCode:
    """The function `agree(batch, plain, patched)`: it tries states until Python must try one."""

    def __init__(self, isa: Isa, offsets: BlockLayout, *, flags: int | None) -> None:
        self._flags = flags
        self.module = module = Module()
        self._library = Library(module, isa.unicorn.target)
        self._memory = MemoryCode(isa, module, offsets, self._library)
        self._blocks = BlockCode(isa, offsets, module, self._library)
        self._running = RunningCode(isa, module, self._blocks, self._memory, flags)
        self._same_fault = self._make_same_fault(module)
        self._same_registers = self._make_same_registers(module)
        self._same = self._make_same(module)
        self._agree = self._make_agree(module)

    @property
    def names(self) -> tuple[str, ...]:
        """The functions of Unicorn's library that the code calls."""
        return self._library.names

    def _make_same_fault(self, module: Module) -> Function:
        """u64 same_fault(batch, plain, patched): whether a copy had the fault of the original."""
        f = module.function("same_fault", 3, local=True)
        batch, plain, patched = f.parameters
        refused = f.load(plain, TrialBlock.offset("refused"))
        ended = (f.load(trial, TrialBlock.offset("ended")) for trial in (plain, patched))
        f.ret_if(f.ne(*ended), 0)
        f.ret_if(f.ne(f.load(patched, TrialBlock.offset("refused")), refused), 0)
        # A page refuses only one kind of access, unless providers have mapped it.
        f.ret(f.flag(f.eq(self._running.in_scratch(f, batch, refused), 0)))
        return f

    @staticmethod
    def _make_same_registers(module: Module) -> Function:
        """u64 same_registers(batch, plain, patched): whether two CPUs have the same registers."""
        f = module.function("same_registers", 3, local=True)
        batch, *both = f.parameters
        states = [f.load(trial, TrialBlock.offset("env")) for trial in both]
        with each_range(f, f.load(batch, BatchBlock.offset("registers"))) as (start, size):
            one, other = (f.add(env, start) for env in states)
            with f.choice(f.eq(size, VECTOR)) as (vector, longer):
                with vector:
                    differing = f.or_(*(f.xor(f.load(one, at), f.load(other, at)) for at in range(0, VECTOR, 8)))
                    f.ret_if(f.ne(differing, 0), 0)
                with longer:
                    f.ret_if(f.fails(f.same(one, other, size)), 0)
        f.ret(1)
        return f

    def _make_same(self, module: Module) -> Function:
        """u64 same(batch, plain, patched): whether both ended in the same way, except for memory."""
        f = module.function("same", 3, local=True)
        batch, plain, patched = f.parameters

        def of(trial: Value, name: str) -> Value:
            return f.load(trial, TrialBlock.offset(name))

        ended = of(plain, "ended")
        with f.choice(f.eq(of(patched, "ended"), Outcome.SIGNAL)) as (signal, other):
            with signal:
                f.ret_if(f.eq(f.call(f.load(batch, BatchBlock.offset("signalled"))), 0), 0)
            with other, f.choice(f.eq(ended, Outcome.DONE)) as (done, fault):
                with done:
                    f.ret_if(f.ne(of(patched, "ended"), Outcome.DONE), 0)
                with fault:
                    f.ret_if(f.eq(f.call(self._same_fault, batch, plain, patched), 0), 0)
        f.ret_if(f.ne(of(plain, "pc"), of(patched, "pc")), 0)
        f.ret_if(f.eq(f.call(self._same_registers, batch, plain, patched), 0), 0)
        if self._flags is not None:
            f.ret_if(
                f.ne(*(self._blocks.read_register(f, of(trial, "uc"), self._flags) for trial in (plain, patched))), 0
            )
        f.ret(1)
        return f

    def _make_agree(self, module: Module) -> Function:
        """u64 agree(batch, plain, patched): try states from `next` on, up to one for Python."""
        f = module.function("agree", 3)
        batch, plain, patched = f.parameters
        for trial in (plain, patched):
            uc = f.load(trial, TrialBlock.offset("uc"))
            self._memory.take_pages(f, trial, own=True)
            self._memory.attend(f, trial)
            self._blocks.prepare(f, uc)
        words = f.load(plain, TrialBlock.offset("words"))
        for word in (Word.SOFT, Word.HARD, Word.NEXT):
            f.store(words, NEVER, 8 * word)
        sites, numbers, count = (f.load(batch, BatchBlock.offset(name)) for name in ("sites", "numbers", "count"))
        with f.loop() as loop:
            at = f.load(batch, BatchBlock.offset("next"))
            loop.leave_if(f.uge(at, count))
            number = f.load(numbers, f.shl(at, 3))
            f.store(batch, f.load(sites, f.shl(at, 3)), BatchBlock.offset("site"))
            f.call(self._running.begin, plain, batch, number)
            loop.leave_if(f.eq(f.call(self._running.plain, batch, plain), Outcome.STRANGE))
            f.call(self._running.begin, patched, batch, number)
            loop.leave_if(f.eq(f.call(self._running.patched, batch, patched), Outcome.STRANGE))
            same = f.call(self._same, batch, plain, patched)
            loop.leave_if(f.eq(same, 0))
            written_alike = f.call(self._memory.settle, batch, plain, patched)
            loop.leave_if(f.eq(written_alike, 0))
            f.store(batch, f.add(at, 1), BatchBlock.offset("next"))
        with f.when(f.ult(f.load(batch, BatchBlock.offset("next")), count)):
            f.call(self._memory.whole, batch, plain, patched)
        for trial in (plain, patched):
            uc = f.load(trial, TrialBlock.offset("uc"))
            self._memory.take_pages(f, trial, own=False)
            self._blocks.finish(f, uc, f.load(trial, TrialBlock.offset("cpu")))
        f.ret(f.load(batch, BatchBlock.offset("next")))
        return f
