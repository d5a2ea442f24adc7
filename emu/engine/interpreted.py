"""The callbacks in Python: the reference, and what runs where llvmlite is not installed.

The rules are told in `emu.engine.state`; `emu.engine.native` has the same functions in machine
code.  A block costs about 300 ns here instead of 2, so a program runs some fifty times slower; what
it does, and when, is the same.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from unicorn.unicorn_py3.unicorn import uclib

from emu.engine import layout
from emu.engine.state import DELIVER, HANDLED, TB_REQUEST_CACHE, TableEntry, TranslationBlock, Word

_BLOCK_HOOK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)
_TRAP_HOOK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p)
_INVALID_HOOK = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p)
_CODE_HOOK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)
_INSTRUCTION_HOOK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)

_UC_CTL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p)


def _block(words: memoryview, table: ctypes.Array[TableEntry], uc: int, kernel_start: int) -> Callable[..., None]:
    handle = ctypes.c_void_p(uc)
    start, half = ctypes.addressof(table), len(table) // 2
    asked = TranslationBlock()
    uc_ctl = _UC_CTL(ctypes.cast(uclib.uc_ctl, ctypes.c_void_p).value or 0)

    def block(_uc: int, address: int, size: int, _words: int) -> None:
        total = words[Word.TOTAL]
        if total >= words[Word.HARD] or (address < kernel_start and total >= words[Word.SOFT]):
            words[Word.BLOCK] = 0
            words[Word.STOPPED] = 1
            uclib.uc_emu_stop(handle)
            return
        index = (address >> 1 ^ address >> 17) & half - 1 | (half if address >= kernel_start else 0)
        entry = table[index]
        if entry.address != address:
            uc_ctl(handle, TB_REQUEST_CACHE, address, ctypes.byref(asked))
            entry.address, entry.count, entry.size = address, asked.icount, size
        words[Word.TOTAL] = total + entry.count
        words[Word.BLOCK] = start + index * ctypes.sizeof(TableEntry)

    return block


def _system_call(words: memoryview, uc: int) -> Callable[..., None]:
    env = words[Word.ENV]
    handle = ctypes.c_void_p(uc)
    regs = (ctypes.c_uint64 * 18).from_address(env)
    segments = (ctypes.c_uint64 * 9).from_address(env + layout.X86_SEGMENTS)
    hflags = ctypes.c_uint32.from_address(env + layout.X86_HFLAGS)
    flags = ctypes.c_uint64()

    def system_call(_uc: int, _words: int) -> None:
        flags.value = 0
        uclib.uc_reg_read(handle, layout.X86_EFLAGS_ID, ctypes.byref(flags))
        regs[1] = regs[16] + 2  # rcx = the instruction after
        regs[11] = flags.value
        regs[17] &= ~layout.word(env + layout.X86_SFMASK)
        cs = layout.word(env + layout.X86_STAR) >> 32 & 0xFFFC
        segments[3:6] = [cs, 0, 0x00A09B00_FFFFFFFF]
        segments[6:9] = [cs + 8, 0, 0x00C09300_FFFFFFFF]
        hflags.value &= ~3
        regs[16] = layout.word(env + layout.X86_LSTAR) - 2  # the length of syscall is added afterwards

    return system_call


class Callbacks:
    """Python callbacks with the attributes of `emu.engine.native.Callbacks`.

    `on_trap(number)` and `on_breakpoint(address)` answer DELIVER or HANDLED; `on_inside()` takes the
    rest of a block back; `pc_slot` is the pc's, which a breakpoint leaves `pc_after`
    bytes behind it; `kernel_start` the kernel's lowest address.
    `delivers`: system calls go to the guest's own vector; else they are traps like others.
    """

    def __init__(
        self,
        isa: str,
        words: memoryview,
        table: ctypes.Array[TableEntry],
        pc_slot: int,
        on_trap: Callable[[int], int],
        on_breakpoint: Callable[[int], int],
        on_inside: Callable[[], None],
        *,
        pc_after: int,
        kernel_start: int,
        delivers: bool,
    ) -> None:
        deliver = getattr(uclib, layout.LAYOUTS[isa].deliver)
        cpu = ctypes.c_void_p(words[Word.CPU])
        uc = words[Word.UC]
        env = words[Word.ENV]
        pc = ctypes.c_uint64.from_address(env + 8 * pc_slot)
        exception = ctypes.c_int32.from_address(words[Word.CPU] + layout.CPU_EXCEPTION)
        breakpoint_number = layout.BREAKPOINT[isa]
        direct = layout.SYSTEM_CALL.get(isa) if delivers else None

        def breakpoint_() -> int:
            words[Word.BLOCK] = 0  # it ends its block, and counts as the instruction it displaced
            pc.value -= pc_after
            answer = on_breakpoint(pc.value)
            if answer == DELIVER:
                pc.value += pc_after
            return answer

        def trap(_uc: int, number: int, _words: int) -> None:
            if isa == "riscv64":
                pc.value -= 4
            if number == breakpoint_number and isa != "riscv64":  # there it arrives as an invalid instruction
                before = 1 if isa == "i386" else 0
                pc.value -= before
                wanted = breakpoint_()
                if wanted:
                    pc.value += before
            else:
                wanted = DELIVER if number == direct else on_trap(number)
            if wanted:
                deliver(cpu)

        def invalid(_uc: int, _words: int) -> bool:
            if isa == "riscv64":
                ctypes.c_uint32.from_address(uc + layout.UC_INVALID_ERROR).value = 0
                wanted = breakpoint_()
            elif isa == "i386":
                wanted = undefined()
            else:
                wanted = invalid_opcode()
            if wanted:
                deliver(cpu)
            return True

        def invalid_opcode() -> int:
            ctypes.c_uint32.from_address(env + layout.X86_ERROR_CODE).value = 0
            ctypes.c_uint32.from_address(env + layout.X86_IS_INT).value = 0
            exception.value = layout.X86_INVALID_OPCODE
            return on_trap(layout.X86_INVALID_OPCODE)

        def undefined() -> int:
            at = pc.value
            if not breakpoint_():
                return HANDLED
            if at < kernel_start:
                words[Word.TOTAL] -= 1
            return invalid_opcode()

        def refused(_uc: int, address: int, size: int, _words: int) -> None:
            pc.value = address
            if words[Word.BLOCK]:
                entry = TableEntry.from_address(words[Word.BLOCK])
                if entry.address == address:
                    words[Word.TOTAL] += 1 - entry.count
                elif address + size != entry.address + entry.size:
                    on_inside()
            if undefined():
                deliver(cpu)
            exception.value = -1
            uclib.uc_reg_write(ctypes.c_void_p(uc), layout.X86_EIP_ID, ctypes.byref(pc))

        self.block = _BLOCK_HOOK(_block(words, table, uc, kernel_start))
        self.trap = _TRAP_HOOK(trap)
        self.invalid = _INVALID_HOOK(invalid) if isa != "aarch64" else None
        self.system_call = _INSTRUCTION_HOOK(_system_call(words, uc)) if isa == "x86_64" and delivers else None
        self.refused = _CODE_HOOK(refused) if isa == "i386" else None
