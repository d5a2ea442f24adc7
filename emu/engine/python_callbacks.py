"""The callbacks in Python: the reference, which also runs where llvmlite is not installed.

`emu.engine.state` documents the rules; `emu.engine.native_callbacks` has the same functions in
machine code. A block costs about 300 ns here instead of 2, so a program runs some fifty times
slower; its actions and their times are the same.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from emu.engine.errors import shut_down
from emu.engine.handlers import Handlers
from emu.engine.qemu import library
from emu.engine.qemu.cpu import Cpu
from emu.engine.state import DELIVER, TB_REQUEST_CACHE, TableEntry, TranslationBlock, Word
from emu.engine.time.clock_words import ClockWord
from emu.engine.time.counter import PREPAID, Counter
from emu.support.words import WORD_MASK, signed

_BLOCK_HOOK: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)
_TRAP_HOOK: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p)
_INVALID_HOOK: Final = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p)
_CODE_HOOK: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)
_INSTRUCTION_HOOK: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)

_UC_CTL: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p)


class Interrupted:
    """The CPU while Unicorn runs: an `emu.isa.unicorn_model.InterruptedCpu`."""

    def __init__(self, cpu: Cpu, words: memoryview, handlers: Handlers) -> None:
        self.handle = cpu.handle
        self.env = cpu.env
        self.exception = cpu.exception
        self.function = cpu.function
        self.read_public = cpu.read_public
        self.write_public = cpu.write_public
        self.pc = cpu.pc_word
        self.ask = handlers.trap
        self._words = words
        self._handlers = handlers
        self._cpu = cpu
        self._pc_after = cpu.isa.traps.pc_after
        self._kernel_start = cpu.isa.kernel_start

    def deliver(self) -> None:
        """Let QEMU deliver the exception to the guest's own vector.

        Where the guest has none QEMU leaves by a long jump, which would leave Python's frames too.
        """
        if self._cpu.model.has_gate(self._cpu, self.exception.value):
            self._cpu.deliver()
        else:
            self._handlers.fail(shut_down(self.pc.value))

    def breakpoint(self) -> int:
        """Ask the engine.

        A breakpoint ends its block, and counts as the instruction it displaced.
        """
        self._words[Word.BLOCK] = 0
        self.pc.value -= self._pc_after
        answer = self._handlers.breakpoint(self.pc.value)
        if answer == DELIVER:
            self.pc.value += self._pc_after
        return answer

    def uncount_user(self, address: int) -> None:
        """Subtract the instruction at an address from the count, if it is a user program's."""
        if address < self._kernel_start:
            self._words[Word.TOTAL] -= 1

    def leave_block(self, size: int) -> None:
        """Count the current block up to and including the instruction of `size` bytes at the pc."""
        if not self._words[Word.BLOCK]:
            return
        entry = TableEntry.from_address(self._words[Word.BLOCK])
        if entry.address == self.pc.value:
            self._words[Word.TOTAL] += 1 - entry.count
        elif self.pc.value + size != entry.address + entry.size:
            self._handlers.inside()


class Callbacks:
    """Python callbacks with the attributes of `emu.engine.native_callbacks.Callbacks`.

    `delivers`: system calls go to the guest's own vector; else they are traps like others.
    """

    def __init__(self, cpu: Cpu, counter: Counter, handlers: Handlers, *, delivers: bool) -> None:
        model = cpu.model
        now = Interrupted(cpu, counter.state, handlers)
        self.fill = None  # Python is the hook: emu.engine.qemu.tlb
        self.emulated = None  # Python is called instead: emu.engine.emulated_instructions
        self.code_hook = None  # Python is the hook: emu.engine.qemu.code_hooks
        self.block = _BLOCK_HOOK(_block(counter, cpu))
        self.trap = _TRAP_HOOK(_trap(now, cpu, delivers=delivers))
        self.invalid = self.system_call = self.refused = None
        if model.on_invalid:
            self.invalid = _INVALID_HOOK(partial(_invalid, now, model.on_invalid))
        if model.on_system_call and delivers:
            self.system_call = _INSTRUCTION_HOOK(partial(_system_call, now, model.on_system_call))
        if model.on_refused:
            self.refused = _CODE_HOOK(partial(_refused, now, model.on_refused))


def moved(words: memoryview[int]) -> bool:
    """Move the deadlines by the instructions that their clock has hidden since they were computed.

    False: none were, or the deadlines are not that clock's, or the run was told to end.
    """
    if not words[Word.CLOCK] or not words[Word.NEXT]:
        return False
    clock = (ctypes.c_int64 * len(ClockWord)).from_address(words[Word.CLOCK])
    hidden = clock[ClockWord.HIDDEN]
    if clock[ClockWord.STANDS]:  # what is executed meanwhile is hidden
        hidden += words[Word.TOTAL] - PREPAID - clock[ClockWord.PAUSED]
    distance = hidden - signed(words[Word.HIDDEN])
    if clock[ClockWord.SKIPPED] != words[Word.SKIPPED] or distance <= 0:
        return False
    for word in (Word.SOFT, Word.HARD):
        words[word] += distance
    words[Word.HIDDEN] = hidden & WORD_MASK
    words[Word.NEXT] = min(words[Word.SOFT], words[Word.HARD])
    return True


def _block(counter: Counter, cpu: Cpu) -> Callable[..., None]:
    words, table, kernel_start = counter.state, counter.table, cpu.isa.kernel_start
    handle = ctypes.c_void_p(cpu.handle)
    start, half = ctypes.addressof(table), counter.half
    asked = TranslationBlock()
    uc_ctl = _UC_CTL(library.address("uc_ctl"))

    def block(_uc: int, address: int, size: int, _words: int) -> None:
        total = words[Word.TOTAL]
        user = address < kernel_start
        while (due := total >= words[Word.HARD] or (user and total >= words[Word.SOFT])) and moved(words):
            pass
        if due:
            words[Word.BLOCK] = 0
            words[Word.STOPPED] = 1
            cpu.stop()
            return
        index = (address >> 1 ^ address >> 17) & half - 1 | (half if address >= kernel_start else 0)
        entry = table[index]
        if entry.address != address:
            uc_ctl(handle, TB_REQUEST_CACHE, address, ctypes.byref(asked))
            entry.address, entry.count, entry.size = address, asked.icount, size
        words[Word.TOTAL] = total + entry.count
        words[Word.BLOCK] = start + index * ctypes.sizeof(TableEntry)
        if words[Word.AT_BLOCK]:
            counter.at_block(words[Word.BLOCK])

    return block


def _trap(now: Interrupted, cpu: Cpu, *, delivers: bool) -> Callable[..., None]:
    model = cpu.model
    direct = model.system_call if delivers else None

    def trap(_uc: int, number: int, _words: int) -> None:
        now.pc.value -= model.pc_ahead
        if number == model.breakpoint:
            now.pc.value -= model.breakpoint_length
            wanted = now.breakpoint()
            if wanted:
                now.pc.value += model.breakpoint_length
        else:
            wanted = DELIVER if number == direct else now.ask(number)
        if wanted:
            now.deliver()
        now.exception.value = -1

    return trap


def _invalid(now: Interrupted, on_invalid: Callable[[Any], int], _uc: int, _words: int) -> bool:
    if on_invalid(now):
        now.deliver()
    return True


def _system_call(now: Interrupted, on_system_call: Callable[[Any], None], _uc: int, _words: int) -> None:
    on_system_call(now)


def _refused(
    now: Interrupted, on_refused: Callable[[Any, int], None], _uc: int, address: int, size: int, _words: int
) -> None:
    now.pc.value = address
    on_refused(now, size)
