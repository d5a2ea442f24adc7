"""Machine code that runs QEMU's translated blocks one by one, without `emu_start`.

It does what `cpu_exec` does between two blocks, for a CPU that is not running: it is for those who
execute single instructions by the million (`trapline.lab.check.native`).  A breakpoint goes to the
same callback of the engine that `emu_start` calls (`emu.engine.native_callbacks`).

Source: Unicorn 2.1.4, qemu/accel/tcg/cpu-exec.c (cpu_exec, cpu_tb_exec, cpu_handle_exception).
"""

from __future__ import annotations

from typing import Final

from emu.engine.qemu.block_layout import (
    CLUSTER_SHIFT,
    ERROR_EXCEPTION,
    NO_EXCEPTION,
    NOT_BEGUN,
    OWN_EXCEPTIONS,
    BlockLayout,
)
from emu.engine.qemu.layout import CPU_EXCEPTION, UC_TCG
from emu.engine.qemu.library import Library
from emu.engine.qemu.targets import TARGETS, before_hook
from emu.isa.base import Isa
from emu.native.builder import Function, Module
from emu.native.operations import Condition, Value

# In place of a block's result: it was left by an exception; it is not translated yet.
_LONGJUMP: Final = -1
_UNKNOWN: Final = -2


class BlockCode:
    """The functions of one module of machine code; `uc`, `cpu` and `env` are addresses of a CPU's."""

    def __init__(self, isa: Isa, offsets: BlockLayout, module: Module, library: Library) -> None:
        self._isa = isa
        self._layout = offsets
        self._library = library
        self._target = TARGETS[isa.unicorn.target]
        self._pc = 8 * isa.registers.slots[isa.registers.pc]
        self._run = self._make_run(module)
        self._next = self._make_next(module)
        self._code = self._make_code(module)
        self._take = self._make_take(module)

    def _make_run(self, module: Module) -> Function:
        """u64 run(buffer, prologue, env, code): the result of a block; `_LONGJUMP`: an exception."""
        f = module.function("run_block", 4, local=True)
        buffer, prologue, env, code = f.parameters
        self._when_jumped(f, buffer, _LONGJUMP)
        f.ret(f.call(prologue, env, code))
        return f

    def _make_next(self, module: Module) -> Function:
        """u64 next(buffer, tcg, env): run the block at the pc; `_UNKNOWN`: it is not translated."""
        f = module.function("next_block", 3, local=True)
        buffer, tcg, env = f.parameters
        self._when_jumped(f, buffer, _LONGJUMP)
        code = f.call(self._library.qemu("helper_lookup_tb_ptr", 1), env)
        f.ret_if(f.eq(code, f.load(tcg, self._layout.tcg_epilogue)), _UNKNOWN, likely=False)
        f.ret(f.call(f.load(tcg, self._layout.tcg_prologue), env, code))
        return f

    @staticmethod
    def _when_jumped(f: Function, buffer: Value, answer: int) -> None:
        """Return here if QEMU leaves by an exception (cpu_loop_exit)."""
        f.module.declare("__sigsetjmp", "declare i32 @__sigsetjmp(ptr, i32) returns_twice")
        pointer = f.value(f"inttoptr i64 {buffer} to ptr")
        found = f.value(f"call i32 @__sigsetjmp(ptr {pointer}, i32 0) returns_twice")
        f.ret_if(f.condition(f"icmp ne i32 {found}, 0"), answer)

    def _make_code(self, module: Module) -> Function:
        """u64 code(uc, cpu, env, how): the code of the block at the pc; 0: there is none.

        `how`: 1 for a block of one instruction, 0 for an ordinary one.
        """
        f = module.function("code", 4, local=True)
        uc, cpu, env, how = f.parameters
        pc, base, flags = self._target.key(f, env, self._library.qemu, self._layout)
        how = f.or_(how, f.shl(f.load(cpu, self._layout.cpu_cluster, 4), CLUSTER_SHIFT))
        self._when_jumped(f, f.add(uc, self._layout.uc_jump_buffers), 0)
        block = f.variable(f.call(self._library.qemu("tb_htable_lookup", 5), cpu, pc, base, flags, how))
        with f.when(f.eq(block.get(), 0)):
            block.set(f.call(self._library.qemu("tb_gen_code", 5), cpu, pc, base, flags, how))
        f.ret_if(f.eq(block.get(), 0), 0, likely=False)
        f.ret(f.load(block.get(), self._layout.block_code))
        return f

    def code(self, f: Function, uc: Value, cpu: Value, env: Value, *, single: bool) -> Value:
        """Return the code of the block at the pc; 0: there is none.  `single`: of one instruction."""
        return f.call(self._code, uc, cpu, env, int(single))

    def run(self, f: Function, uc: Value, env: Value, code: Value) -> Value:
        """Run a block, and return its result."""
        prologue = f.load(f.load(uc, UC_TCG), self._layout.tcg_prologue)
        return f.call(self._run, f.add(uc, self._layout.uc_jump_buffers), prologue, env, code)

    def run_next(self, f: Function, uc: Value, env: Value) -> Value:
        """Run the block at the pc, if it is translated, and return its result."""
        return f.call(self._next, f.add(uc, self._layout.uc_jump_buffers), f.load(uc, UC_TCG), env)

    # -- the result of a block

    @staticmethod
    def is_unknown(f: Function, result: Value) -> Condition:
        """Return whether the block is not translated yet."""
        return f.eq(result, _UNKNOWN)

    @staticmethod
    def is_exception(f: Function, result: Value) -> Condition:
        """Return whether an exception has left the block."""
        return f.eq(result, _LONGJUMP)

    @staticmethod
    def has_begun(f: Function, result: Value) -> Condition:
        """Return whether the block has run: no request to end has kept it from it."""
        return f.ne(f.and_(result, 3), NOT_BEGUN)

    def at_block(self, f: Function, env: Value, result: Value) -> None:
        """Set the pc to the start of a block that has not begun (synchronize_from_tb)."""
        block = f.and_(result, ~3)
        f.store(env, self._target.start(f, env, f.load(block, self._layout.block_pc)), self._pc)

    # -- exceptions

    @staticmethod
    def exception(f: Function, cpu: Value) -> Value:
        """Return the number of the current exception."""
        return f.load(cpu, CPU_EXCEPTION, 4)

    @staticmethod
    def no_exception(f: Function, number: Value) -> Condition:
        """Return whether a number is that of no exception."""
        return f.eq(number, NO_EXCEPTION)

    @staticmethod
    def forget_exception(f: Function, cpu: Value) -> None:
        """Make QEMU forget the current exception."""
        f.store(cpu, NO_EXCEPTION, CPU_EXCEPTION, 4)

    def ends(self, f: Function, cpu: Value) -> Condition:
        """Return whether the current exception is `Target.ends`."""
        return f.eq(self.exception(f, cpu), self._target.ends)

    def is_refused(self, f: Function, uc: Value, cpu: Value) -> Condition:
        """Return whether a page has refused an access."""
        none = self.no_exception(f, self.exception(f, cpu))
        return f.both(none, f.eq(f.load(uc, self._layout.uc_invalid_error, 4), ERROR_EXCEPTION))

    def refused_address(self, f: Function, uc: Value) -> Value:
        """Return the address of the access that a page has refused."""
        return f.load(uc, self._layout.uc_invalid_address)

    def _make_take(self, module: Module) -> Function:
        """u64 take(uc, cpu, env, words, trap, invalid): 1, or 0 for an unknown exception."""
        f = module.function("take_exception", 6, local=True)
        uc, cpu, env, words, trap, callback = f.parameters
        number = self.exception(f, cpu)
        f.ret_if(f.uge(number, OWN_EXCEPTIONS), 0)
        stops, invalid = f.load(uc, self._layout.uc_stop_interrupt), f.variable(0)
        with f.when(f.ne(stops, 0)):
            invalid.set(f.and_(f.call(stops, uc, number), 0xFF))
        with f.choice(f.ne(invalid.get(), 0)) as (refused, other):
            with refused:
                f.ret_if(f.eq(callback, 0), 0)
                f.ret_if(f.eq(f.and_(f.call(callback, uc, words), 1), 0), 0)
            with other:
                before_hook(f, self._isa, env, self._layout)
                f.call(trap, uc, number, words)
        self.forget_exception(f, cpu)
        f.ret(1)
        return f

    def take_exception(
        self, f: Function, uc: Value, cpu: Value, env: Value, words: Value, trap: Value, invalid: Value
    ) -> Value:
        """Let the engine's callbacks take an exception; return 1, or 0 if it is unknown."""
        return f.call(self._take, uc, cpu, env, words, trap, invalid)

    # -- a run

    def prepare(self, f: Function, uc: Value) -> None:
        """Make the CPU seem to run, as `emu_start` does."""
        f.store(uc, 1, self._layout.uc_level, 4)
        f.store(uc, 0, self._layout.uc_done, 1)
        f.store(uc, -1, self._layout.uc_count)

    def finish(self, f: Function, uc: Value, cpu: Value) -> None:
        """Make the CPU seem to have run."""
        self.clear_requests(f, uc, cpu)
        f.store(uc, 0, self._layout.uc_level, 4)
        f.store(uc, 1, self._layout.uc_done, 1)

    def enter(self, f: Function, uc: Value, cpu: Value) -> None:
        """Prepare a CPU whose state has been loaded for its first block."""
        self.clear_requests(f, uc, cpu)
        self._library.call(f, self._target.enter, cpu)

    def leave(self, f: Function, cpu: Value) -> None:
        """Complete the CPU's state after its last block."""
        self._library.call(f, self._target.leave, cpu)

    def clear_requests(self, f: Function, uc: Value, cpu: Value) -> None:
        """Clear all requests to stop the CPU."""
        f.store(uc, 0, self._layout.uc_counter)
        f.store(uc, 0, self._layout.uc_invalid_error, 4)
        f.store(uc, 0, self._layout.uc_stop_request, 1)
        self.clear_quit(f, uc)
        f.store(cpu, 0, self._layout.cpu_exit_request, 1)
        self.forget_exception(f, cpu)
        f.store(f.load(cpu, self._layout.cpu_budget), 0, 2, 2)

    def may_go_on(self, f: Function, uc: Value) -> Condition:
        """Return whether nobody has asked the run to end."""
        return f.eq(f.load(uc, self._layout.uc_stop_request, 1), 0)

    def has_quit(self, f: Function, uc: Value) -> Condition:
        """Return whether a hook has set the pc, and made QEMU leave the block."""
        return f.ne(f.load(uc, self._layout.uc_quit_request, 1), 0)

    def clear_quit(self, f: Function, uc: Value) -> None:
        """Clear that request."""
        f.store(uc, 0, self._layout.uc_quit_request, 1)

    # -- registers

    def read_register(self, f: Function, uc: Value, number: int) -> Value:
        """Return a register by Unicorn's own call; some have four bytes."""
        buffer = f.buffer(8)
        f.store(buffer, 0)
        f.call(self._library.unicorn("uc_reg_read", 3), uc, number, buffer)
        return f.load(buffer)

    def write_register(self, f: Function, uc: Value, number: int, source: Value) -> None:
        """Set a register, from an address, by Unicorn's own call."""
        f.call(self._library.unicorn("uc_reg_write", 3), uc, number, source)
