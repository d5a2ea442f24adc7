"""Machine code that executes one instruction from one state, plain or patched.

It runs the translated blocks of the engine (`emu.engine.qemu.block_code`), so providers,
tracepoints and plans are the product's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from emu.engine.hits.hit_steps import COPY_FAULT, of_exception
from emu.engine.qemu.block_code import BlockCode
from emu.engine.state import HANDLED, NEVER, Word
from emu.isa.base import Isa
from emu.native.builder import Function, Module
from emu.native.operations import Value
from trapline.lab.check.cpu.states import POOL, REPEATED
from trapline.lab.check.native.memory_code import MemoryCode
from trapline.lab.check.native.trial import BatchBlock, Outcome, TrialBlock

# The number of blocks after which an instruction is left to Python.
_BLOCKS: Final = 64
# The same for one that repeats: in each repetition a breakpoint, its copy and the way back.
_REPEATING_BLOCKS: Final = 8 * REPEATED
# The size in bytes of most vector registers: many ranges of the CPU state have it.
VECTOR: Final = 16


@contextmanager
def each_range(f: Function, ranges: Value) -> Iterator[tuple[Value, Value]]:
    """Generate a loop over the offsets and sizes at an address, ended by a size of 0."""
    place = f.variable(ranges)
    with f.loop() as loop:
        here = place.get()
        size = f.load(here, 8)
        loop.leave_if(f.eq(size, 0))
        yield f.load(here), size
        place.set(f.add(here, 16))


class RunningCode:
    """The functions `begin`, which loads a state, `plain` and `patched`, which run from there."""

    def __init__(self, isa: Isa, module: Module, blocks: BlockCode, memory: MemoryCode, flags: int | None) -> None:
        self._pc = 8 * isa.registers.slots[isa.registers.pc]
        counter = isa.registers.counter
        self._counter = None if counter is None else 8 * isa.registers.slots[counter]
        self._flags = flags
        self._blocks = blocks
        self._memory = memory
        self.begin = self._make_begin(module)
        self._end = self._make_end(module)
        self._faulted = self._make_faulted(module)
        self._fetched = self._make_fetched(module)
        self._trapped = self._make_trapped(module)
        self._excepted = self._make_excepted(module)
        self._once = self._make_once(module)
        self.plain = self._make_plain(module)
        self._served = self._make_served(module)
        self._put_back = self._make_put_back(module)
        self._left_by = self._make_left_by(module)
        self._after_block = self._make_after_block(module)
        self.patched = self._make_patched(module)

    def _make_begin(self, module: Module) -> Function:
        """u64 begin(trial, batch, number): load a state."""
        f = module.function("begin", 3, local=True)
        trial, batch, number = f.parameters
        cpu, env = f.load(trial, TrialBlock.offset("cpu")), f.load(trial, TrialBlock.offset("env"))
        images = f.load(trial, TrialBlock.offset("images"))
        own, times = f.urem(number, POOL), f.udiv(number, POOL)
        self._load(f, trial, "fixed", f.load(trial, TrialBlock.offset("base")))
        self._load(f, trial, "varying", f.load(images, f.shl(own, 3)))
        with f.when(f.ne(times, 0)):
            self._mix(f, trial, f.urem(f.add(own, times), POOL))
        if self._counter is not None:
            with f.when(f.ne(f.load(batch, BatchBlock.offset("repeats")), 0), likely=False):
                f.store(env, f.and_(f.load(env, self._counter), REPEATED), self._counter)
        f.store(env, f.load(batch, BatchBlock.offset("site")), self._pc)
        self._blocks.enter(f, f.load(trial, TrialBlock.offset("uc")), cpu)
        f.ret()
        return f

    @staticmethod
    def _load(f: Function, trial: Value, ranges: str, image: Value) -> None:
        """Load the ranges of an image that a field of `TrialBlock` has."""
        env = f.load(trial, TrialBlock.offset("env"))
        with each_range(f, f.load(trial, TrialBlock.offset(ranges))) as (start, size):
            target, source = f.add(env, start), f.add(image, start)
            with f.choice(f.eq(size, VECTOR)) as (vector, other):
                with vector:
                    for word in range(0, VECTOR, 8):
                        f.store(target, f.load(source, word), word)
                with other:
                    f.copy(target, source, size)

    def _mix(self, f: Function, trial: Value, rest: Value) -> None:
        """Load the flags and the vectors of another state of the pool (`states.parts`)."""
        self._load(f, trial, "vectors", f.load(f.load(trial, TrialBlock.offset("images")), f.shl(rest, 3)))
        if self._flags is not None:
            flags = f.add(f.load(trial, TrialBlock.offset("flags")), f.shl(rest, 3))
            self._blocks.write_register(f, f.load(trial, TrialBlock.offset("uc")), self._flags, flags)

    def _make_end(self, module: Module) -> Function:
        """u64 end(trial, outcome): store the ending of an execution."""
        f = module.function("end", 2, local=True)
        trial, outcome = f.parameters
        cpu, env = f.load(trial, TrialBlock.offset("cpu")), f.load(trial, TrialBlock.offset("env"))
        self._blocks.leave(f, cpu)
        f.store(trial, f.load(env, self._pc), TrialBlock.offset("pc"))
        f.store(trial, outcome, TrialBlock.offset("ended"))
        f.store(f.load(trial, TrialBlock.offset("words")), 0, 8 * Word.BLOCK)
        f.ret(outcome)
        return f

    def _make_faulted(self, module: Module) -> Function:
        """u64 faulted(trial): FAULT, or 0 for another exception; the address is noted."""
        f = module.function("faulted", 1, local=True)
        (trial,) = f.parameters
        uc, cpu = f.load(trial, TrialBlock.offset("uc")), f.load(trial, TrialBlock.offset("cpu"))
        f.ret_if(f.fails(self._blocks.is_refused(f, uc, cpu)), 0)
        f.store(trial, self._blocks.refused_address(f, uc), TrialBlock.offset("refused"))
        f.ret(Outcome.FAULT)
        return f

    def _make_plain(self, module: Module) -> Function:
        """u64 plain(batch, trial): execute one plain instruction; the state is loaded."""
        f = module.function("plain", 2, local=True)
        batch, trial = f.parameters
        left = f.variable(_REPEATING_BLOCKS)
        with f.loop() as loop:
            ended = f.call(self._once, batch, trial)
            f.ret_if(f.ne(ended, Outcome.DONE), ended)
            loop.leave_if(f.eq(self._again(f, batch, f.load(trial, TrialBlock.offset("pc"))), 0))
            left.set(f.sub(left.get(), 1))
            f.ret_if(f.eq(left.get(), 0), Outcome.STRANGE, likely=False)
        f.ret(Outcome.DONE)
        return f

    def _again(self, f: Function, batch: Value, pc: Value) -> Value:
        """Return whether an instruction that repeats is to be executed once more: 1 or 0."""
        here = f.flag(f.eq(pc, f.load(batch, BatchBlock.offset("site"))))
        return f.and_(here, f.load(batch, BatchBlock.offset("repeats")))

    def _make_once(self, module: Module) -> Function:
        """u64 once(batch, trial): execute an instruction once, as the CPU is."""
        f = module.function("once", 2, local=True)
        batch, trial = f.parameters
        uc, cpu, env = (f.load(trial, TrialBlock.offset(name)) for name in ("uc", "cpu", "env"))
        code = self._blocks.code(f, uc, cpu, env, single=True)
        with f.when(f.eq(code, 0)):
            f.ret(f.call(self._end, trial, Outcome.STRANGE))
        # A branch to another page would go on in the block there, if that is translated.
        self._allow_one(f, f.load(trial, TrialBlock.offset("words")))
        found = self._blocks.run(f, uc, env, code)
        with f.when(self._blocks.is_exception(f, found)):
            fault = f.call(self._faulted, trial)
            with f.when(f.eq(fault, Outcome.FAULT)):
                f.ret(f.call(self._end, trial, f.call(self._fetched, batch, trial)))
            with f.when(f.ne(fault, 0)):
                f.ret(f.call(self._end, trial, fault))
            with f.when(self._blocks.ends(f, cpu)):
                f.ret(f.call(self._end, trial, f.call(self._excepted, trial)))
            with f.when(self._blocks.no_exception(f, self._blocks.exception(f, cpu))):
                f.ret(f.call(self._end, trial, self._due(f, trial)))
            known = f.call(self._trapped, batch, trial)
            f.ret(f.call(self._end, trial, f.mul(known, self._signal(f, uc))))
        with f.when(f.fails(self._blocks.has_begun(f, found)), likely=False):
            self._blocks.at_block(f, env, found)
            f.ret(f.call(self._end, trial, self._due(f, trial)))
        # A system call asks the run to end.
        f.ret(f.call(self._end, trial, f.mul(f.flag(self._blocks.may_go_on(f, uc)), Outcome.DONE)))
        return f

    @staticmethod
    def _allow_one(f: Function, words: Value) -> None:
        """Let one block run: the next one is overdue."""
        deadline = f.add(f.load(words, 8 * Word.TOTAL), 1)
        f.store(words, deadline, 8 * Word.HARD)
        f.store(words, deadline, 8 * Word.NEXT)

    def in_scratch(self, f: Function, batch: Value, pc: Value) -> Value:
        """Return whether the pc is in scratch space: 1 or 0."""
        stretches, count = (f.load(batch, BatchBlock.offset(name)) for name in ("stretches", "scratch"))
        return f.call(self._memory.within, stretches, count, pc)

    def _make_fetched(self, module: Module) -> Function:
        """u64 fetched(batch, trial): DONE if a page refuses the next instruction, else FAULT."""
        f = module.function("fetched", 2, local=True)
        batch, trial = f.parameters
        led = f.load(f.load(trial, TrialBlock.offset("env")), self._pc)
        f.ret_if(f.ne(led, f.load(trial, TrialBlock.offset("refused"))), Outcome.FAULT)
        f.ret_if(f.eq(led, f.load(batch, BatchBlock.offset("site"))), Outcome.FAULT)
        f.ret(f.select(f.eq(self.in_scratch(f, batch, led), 0), Outcome.DONE, Outcome.FAULT))
        return f

    def _make_trapped(self, module: Module) -> Function:
        """u64 trapped(batch, trial): let the engine take an exception; 0: it is unknown."""
        f = module.function("trapped", 2, local=True)
        batch, trial = f.parameters
        names = ("uc", "cpu", "env", "words", "trap", "invalid")
        known = self._blocks.take_exception(f, *(f.load(trial, TrialBlock.offset(name)) for name in names))
        f.ret_if(f.eq(known, 0), 0)
        self._count_trap(f, batch)
        f.ret(1)
        return f

    def _count_trap(self, f: Function, batch: Value) -> None:
        """Note that the breakpoint was taken."""
        f.store(batch, f.add(f.load(batch, BatchBlock.offset("traps")), 1), BatchBlock.offset("traps"))

    def _make_patched(self, module: Module) -> Function:
        """u64 patched(batch, trial): run patched code until the pc has left the room for copies."""
        f = module.function("patched", 2, local=True)
        batch, trial = f.parameters
        uc, cpu, env, words = (f.load(trial, TrialBlock.offset(name)) for name in ("uc", "cpu", "env", "words"))
        f.store(batch, 0, BatchBlock.offset("traps"))
        for word in (Word.BLOCK, Word.STOPPED, Word.SERVED, Word.REFUSED):
            f.store(words, 0, 8 * word)
        f.store(words, NEVER, 8 * Word.SOFT)
        repeats = f.ne(f.load(batch, BatchBlock.offset("repeats")), 0)
        left = f.variable(f.select(repeats, _REPEATING_BLOCKS, _BLOCKS))
        with f.loop():
            with f.when(f.eq(left.get(), 0), likely=False):
                f.ret(f.call(self._end, trial, Outcome.STRANGE))
            left.set(f.sub(left.get(), 1))
            self._allow_one(f, words)
            found = f.variable(self._blocks.run_next(f, uc, env))
            with f.when(self._blocks.is_unknown(f, found.get()), likely=False):
                code = self._blocks.code(f, uc, cpu, env, single=False)
                with f.when(f.eq(code, 0)):
                    f.ret(f.call(self._end, trial, Outcome.STRANGE))
                found.set(self._blocks.run(f, uc, env, code))
            f.call(self._after_block, batch, trial, found.get())
            ended = f.load(trial, TrialBlock.offset("ended"))
            with f.when(f.ne(ended, Outcome.DONE)):
                f.ret(f.call(self._end, trial, ended))
            self._leave_if_over(f, batch, trial)
        return f

    def _make_excepted(self, module: Module) -> Function:
        """u64 excepted(trial): note the exception, and return EXCEPTION."""
        f = module.function("excepted", 1, local=True)
        (trial,) = f.parameters
        cpu = f.load(trial, TrialBlock.offset("cpu"))
        f.store(trial, self._blocks.exception(f, cpu), TrialBlock.offset("refused"))
        self._blocks.forget_exception(f, cpu)
        f.ret(Outcome.EXCEPTION)
        return f

    def _make_served(self, module: Module) -> Function:
        """u64 served(trial, pc): let the engine serve the fault of a copy, as it has learned."""
        f = module.function("served", 2, local=True)
        trial, pc = f.parameters
        take, anywhere = f.load(trial, TrialBlock.offset("take")), of_exception(COPY_FAULT, 0)
        for key in (f.or_(pc, anywhere), anywhere):
            f.ret_if(f.eq(f.call(take, key), HANDLED), 1, likely=True)
        f.ret(0)
        return f

    def _make_put_back(self, module: Module) -> Function:
        """u64 put_back(batch, trial, outcome): let the provider serve the fault of a copy.

        It returns the outcome, or STRANGE if the provider does not serve it.
        """
        f = module.function("put_back", 3, local=True)
        batch, trial, outcome = f.parameters
        pc = f.load(f.load(trial, TrialBlock.offset("env")), self._pc)
        f.ret_if(f.eq(self.in_scratch(f, batch, pc), 0), outcome)
        site = f.load(batch, BatchBlock.offset("site"))
        with f.when(f.eq(f.load(batch, BatchBlock.offset("put_back")), site), likely=True):
            f.ret_if(f.ne(f.call(self._served, trial, pc), 0), outcome, likely=True)
        served = f.call(f.load(batch, BatchBlock.offset("faulted")))
        f.store(batch, site, BatchBlock.offset("put_back"))
        f.ret(f.select(f.ne(served, 0), outcome, Outcome.STRANGE))
        return f

    def _make_left_by(self, module: Module) -> Function:
        """u64 left_by(batch, trial): determine the ending of a block that an exception has left."""
        f = module.function("left_by", 2, local=True)
        batch, trial = f.parameters
        fault = f.call(self._faulted, trial)
        with f.when(f.ne(fault, 0)):
            crashed = f.ne(fault, Outcome.FAULT)
            with f.when(crashed, likely=False):
                f.ret(f.call(self._put_back, batch, trial, fault))
            fetched = f.call(self._fetched, batch, trial)
            f.ret_if(f.eq(fetched, Outcome.DONE), Outcome.DONE)
            f.ret(f.call(self._put_back, batch, trial, fetched))
        cpu = f.load(trial, TrialBlock.offset("cpu"))
        with f.when(self._blocks.no_exception(f, self._blocks.exception(f, cpu))):
            f.ret(self._due(f, trial))
        compared = f.eq(f.load(batch, BatchBlock.offset("excepted")), f.load(batch, BatchBlock.offset("site")))
        with f.when(f.both(self._blocks.ends(f, cpu), compared), likely=False):
            pc = f.load(f.load(trial, TrialBlock.offset("env")), self._pc)
            with f.when(f.ne(self.in_scratch(f, batch, pc), 0)), f.when(f.ne(f.call(self._served, trial, pc), 0)):
                f.ret(f.call(self._excepted, trial))
        known = f.call(self._trapped, batch, trial)
        f.ret(f.mul(known, self._signal(f, f.load(trial, TrialBlock.offset("uc")))))
        return f

    def _make_after_block(self, module: Module) -> Function:
        """u64 after_block(batch, trial, found): determine and store the ending of a patched block.

        DONE: the next block may run.
        """
        f = module.function("after_block", 3, local=True)
        batch, trial, found = f.parameters
        uc, env = f.load(trial, TrialBlock.offset("uc")), f.load(trial, TrialBlock.offset("env"))
        outcome = f.variable(Outcome.DONE)
        with f.choice(self._blocks.has_quit(f, uc), likely=False) as (led, other):
            with led:
                # A hook has raised the exception, and it was served: the pc is set.
                self._count_trap(f, batch)
                self._blocks.clear_quit(f, uc)
                outcome.set(self._signal(f, uc))
            with other, f.choice(self._blocks.is_exception(f, found)) as (raised, ended):
                with raised:
                    outcome.set(f.call(self._left_by, batch, trial))
                with ended, f.choice(self._blocks.has_begun(f, found)) as (whole, due):
                    with whole:
                        outcome.set(self._signal(f, uc))
                    with due:
                        # The pc is not in the CPU yet.
                        self._blocks.at_block(f, env, found)
                        outcome.set(self._due(f, trial))
        # A page has refused the access of a plan.
        refused = f.load(f.load(trial, TrialBlock.offset("words")), 8 * Word.REFUSED)
        f.store(trial, f.select(f.eq(refused, 0), outcome.get(), Outcome.FAULT), TrialBlock.offset("ended"))
        f.ret()
        return f

    def _due(self, f: Function, trial: Value) -> Value:
        """Return DONE if a deadline has stopped a block, SIGNAL if Python has."""
        self._blocks.clear_requests(f, *(f.load(trial, TrialBlock.offset(name)) for name in ("uc", "cpu")))
        # A deadline leaves this word as it is.
        python = f.eq(f.load(f.load(trial, TrialBlock.offset("words")), 8 * Word.NEXT), 0)
        return f.select(python, Outcome.SIGNAL, Outcome.DONE)

    def _signal(self, f: Function, uc: Value) -> Value:
        """Return DONE, or SIGNAL if Python has asked the run to end."""
        return f.select(self._blocks.may_go_on(f, uc), Outcome.DONE, Outcome.SIGNAL)

    def _leave_if_over(self, f: Function, batch: Value, trial: Value) -> None:
        """Return, unless a copy goes on with the way back, or the next repetition follows."""
        words, env = f.load(trial, TrialBlock.offset("words")), f.load(trial, TrialBlock.offset("env"))
        pc = f.load(env, self._pc)
        inside = f.or_(self.in_scratch(f, batch, pc), self._again(f, batch, pc))
        with f.when(f.eq(inside, 0)):
            traps = f.load(batch, BatchBlock.offset("traps"))
            trapped = f.ne(f.or_(traps, f.load(words, 8 * Word.SERVED)), 0)
            f.ret(f.call(self._end, trial, f.mul(f.flag(trapped), Outcome.DONE)))
