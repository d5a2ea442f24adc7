"""Unicorn behind one class: run, stop, registers, memory, traps, exact counting.

What Unicorn can and cannot do shapes this file; the facts it relies on are told where they are
used.  Rules for whoever adds to it:

* no per-instruction hook, no memory hook, no `timeout=`, no `until` inside code: each costs all guests their speed or
  exactness;
* callbacks never let an exception out: it is kept, the run is stopped, and `run` raises it;
* code is written by `write_code` alone, which also makes Unicorn forget what it translated.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import unicorn
from unicorn.unicorn_py3.unicorn import uclib

from emu.displaced import Plan
from emu.engine import interpreted, layout, native, vectors
from emu.engine.access import Access
from emu.engine.errors import EngineError, GuestCrashError, PageFaultError
from emu.engine.memory import GuestMemory, HostMemory, Memory
from emu.engine.pages import PAGE, AddressSpace, PageMap
from emu.engine.plans import Encoder, Windows
from emu.engine.refusals import Refusals
from emu.engine.state import BLOCKS, DELIVER, HANDLED, NEVER, WORDS, TableEntry, Word
from emu.engine.tlb import SoftTlb
from emu.isa.base import Isa

# Architecture and mode that `unicorn.Uc` takes, by the name of the ISA.
MODES: Final = {
    "x86_64": (unicorn.UC_ARCH_X86, unicorn.UC_MODE_64),
    "aarch64": (unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM),
    "riscv64": (unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV64),
    "i386": (unicorn.UC_ARCH_X86, unicorn.UC_MODE_32),
}
# emu_start's `until`: no code is there.  0 would make a jump to NULL a clean stop.
_NOWHERE: Final = 0xFFFF_FFFF_FFFF_FFF0
_CPU_WORDS: Final = 128
_TOTAL: Final = int(Word.TOTAL)
# Where the count begins: instructions may be taken off it before the first has run.
_PREPAID: Final = 64
# As plain numbers: time is read at every firing.
_BLOCK: Final = int(Word.BLOCK)
_COUNT: Final = 0xFFFF_FFFF
_CLOCK_VECTOR: Final = 32
_emu_start, _context_restore = uclib.uc_emu_start, uclib.uc_context_restore
# Called millions of times; the binding's wrappers around them take longer than they do.
_reg_read, _reg_write = uclib.uc_reg_read, uclib.uc_reg_write
_ON_BREAKPOINT = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64)
_ON_LATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64)
_ON_INSIDE = ctypes.CFUNCTYPE(None)
_ON_TRAP = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32)
_ON_INSTRUCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_CODE_HOOK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)


class Engine:
    """One emulated CPU and its RAM.

    `on_breakpoint(address)` is called for every breakpoint, with the pc there, and
    `on_trap(number)` for every other synchronous exception but system calls, with Unicorn's number
    for it.  Each answers `DELIVER`
    (the guest's own vector gets it) or `HANDLED`; a breakpoint may also be answered by what `plan`
    returns.  With `pages` the address space is the host's, otherwise the guest's page tables'.
    System calls go to the guest's vector, unless `on_system_call` serves them: it is called with
    the pc behind the instruction.  `accelerated` says whether the callbacks are machine code.
    `blocks`: how many blocks' sizes are remembered, a power of two; whoever writes code all the
    time has all of them forgotten as often.
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
    ) -> None:
        self.isa = isa
        self.accelerated = native.available() if accelerated is None else accelerated
        self._uc = unicorn.Uc(*MODES[isa.name])
        self._handle = self._uc._uch  # noqa: SLF001
        self._forget = layout.LAYOUTS[isa.name].function("tb_invalidate_phys_range")
        self._word = ctypes.c_uint64()
        self._word_at = ctypes.addressof(self._word)
        if isa.name == "aarch64":
            # Else 1 KiB: four misses for each page, and a page that changes is forgotten by its first quarter only.
            self._uc.ctl_set_page_size(PAGE)
        # emu_start ends by translating `until` in the address space of the moment, to drop the code there.  In user
        # mode that is a page fault nobody takes: cr2 is lost, and old_exception makes the next true fault a double
        # fault.  With a set of exits, left empty, it does not look.
        self._uc.ctl_exits_enabled(enable=True)
        self._cpu, self._env = layout.check(self._uc, isa.name)
        self.words = memoryview((ctypes.c_uint64 * _CPU_WORDS).from_address(self._env)).cast("B").cast("Q")
        """The CPU state as 64-bit words, indexed by `Register.slot`."""
        self.memory: Memory = GuestMemory(ram_size, isa, self.words) if pages is None else HostMemory(ram_size, pages)
        self.load = self.memory.load
        self.store = self.memory.store
        self._uc.mem_map_ptr(0, ram_size, unicorn.UC_PROT_ALL, self.memory.pointer)
        self._pc = isa.registers.slots[isa.registers.pc]
        self._slots = isa.registers.slots
        self._public = {register.name: register.unicorn for register in isa.registers.registers}
        self.on_breakpoint: Callable[[int], int] = lambda _address: DELIVER
        self.on_late: Callable[[int], int] = lambda _address: DELIVER
        self.on_trap: Callable[[int], int] = lambda _number: DELIVER
        self._on_system_call = on_system_call
        self._system_call_number = layout.SYSTEM_CALL.get(isa.name) if on_system_call else None
        self._failure: BaseException | None = None
        self._in_code_hook = False
        self._left = False
        self._steps = False
        self._running = False
        self._stale = False
        self._indices: dict[tuple[int, int], int] = {}
        self._user_indices: dict[tuple[int, int], int] = {}
        self._halted = ctypes.c_uint32.from_address(self._cpu + layout.CPU_HALTED)
        self._exception = ctypes.c_int32.from_address(self._cpu + layout.CPU_EXCEPTION)
        self._half = blocks
        self._table = (TableEntry * (2 * blocks))()
        self._entries = memoryview(self._table).cast("B").cast("Q")
        """The table as words: of each entry the address, then the count and the size in one."""
        self._entries_at = ctypes.addressof(self._table)
        self._state_array = (ctypes.c_uint64 * WORDS)()
        self._state: memoryview[int] = memoryview(self._state_array).cast("B").cast("Q")
        self._windows = Windows()
        self._plans = Encoder(isa, self._env)
        self._prepare_state()
        self._keep: list[Any] = []
        self._refusals: Refusals | None = None
        self._install_callbacks()
        self._tlb: SoftTlb | None = None
        if isinstance(self.memory, HostMemory):
            self._tlb = SoftTlb(self._uc, isa.name, self._cpu, self.memory, _NOWHERE)
            self._hook(unicorn.UC_HOOK_TLB_FILL, self._tlb.callback)
        if isinstance(pages, PageMap):
            pages.on_change = self._show_windows
        self._show_windows()
        if isa.name == "aarch64":
            self._enable_aarch64_el1()

    def _prepare_state(self) -> None:
        state = self._state
        state[Word.TOTAL] = _PREPAID
        state[Word.SOFT] = state[Word.HARD] = state[Word.NEXT] = NEVER
        state[Word.CPU] = self._cpu
        state[Word.ENV] = self._env
        state[Word.UC] = self._handle.value

    def _install_callbacks(self) -> None:
        delivers = self._on_system_call is None
        callbacks: native.Callbacks | interpreted.Callbacks
        if self.accelerated:
            functions = (
                _ON_TRAP(self._trap),
                _ON_BREAKPOINT(self._breakpoint),
                _ON_LATE(self._late),
                _ON_INSIDE(self._inside),
            )
            self._keep.append(functions)
            on_trap, on_breakpoint, on_late, on_inside = (
                ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions
            )
            addresses = {
                "words": ctypes.addressof(self._state_array),
                "table": ctypes.addressof(self._table),
                "TABLE_MASK": self._half - 1,
                "TABLE_BITS": self._half.bit_length() - 1,
                "PC_OFFSET": 8 * self._pc,
                "on_trap": on_trap,
                "on_breakpoint": on_breakpoint,
                "on_late": on_late,
                "on_inside": on_inside,
                "PC_AFTER": self.isa.traps.pc_after,
                "WORD": self.isa.word,
                "ADDRESS": self.isa.address_mask,
                "KERNEL_START": self.isa.kernel_start,
                "windows": self._windows.address,
            }
            callbacks = native.Callbacks(self.isa.name, addresses, delivers=delivers)
        else:
            callbacks = interpreted.Callbacks(
                self.isa.name,
                self._state,
                self._table,
                self._pc,
                self._trap,
                self._breakpoint,
                self._inside,
                pc_after=self.isa.traps.pc_after,
                kernel_start=self.isa.kernel_start,
                delivers=delivers,
            )
        self._keep.append(callbacks)
        self._hook(unicorn.UC_HOOK_BLOCK, callbacks.block)
        self._hook(unicorn.UC_HOOK_INTR, callbacks.trap)
        if callbacks.invalid:
            self._hook(unicorn.UC_HOOK_INSN_INVALID, callbacks.invalid)
        if callbacks.refused and self.isa.refused:
            hook = partial(self._hook, unicorn.UC_HOOK_CODE, callbacks.refused)
            self._refusals = Refusals(self.isa.refused, hook, self._unhook)
        system_call: Any = callbacks.system_call
        if self.isa.name == "x86_64" and not delivers:
            system_call = _ON_INSTRUCTION(lambda _uc, _words: self._system_call())
            self._keep.append(system_call)
        if system_call:
            self._hook(unicorn.UC_HOOK_INSN, system_call, instruction=unicorn.x86_const.UC_X86_INS_SYSCALL)

    def _show_windows(self) -> None:
        self._windows.set(self.memory.windows(), self.memory.pointer)

    def plan(self, plan: Plan) -> int:
        """Return the answer to a breakpoint that has a displaced instruction's plan carried out natively; 0: cannot.

        Should the plan meet memory that native code cannot reach, `on_late(address)` is asked, with all
        registers but the pc as they were.
        """
        return self._plans.encode(plan) if self.accelerated else 0

    def _hook(self, kind: int, callback: Any, begin: int = 1, end: int = 0, instruction: int | None = None) -> int:
        """Add a hook by the C call: the binding wraps callbacks in Python of its own."""
        hook = ctypes.c_size_t()
        extra = () if instruction is None else (ctypes.c_int(instruction),)
        error = uclib.uc_hook_add(
            self._handle,
            ctypes.byref(hook),
            kind,
            ctypes.cast(callback, ctypes.c_void_p),
            ctypes.c_void_p(ctypes.addressof(self._state_array)),
            ctypes.c_uint64(begin),
            ctypes.c_uint64(end),
            *extra,
        )
        if error:
            raise EngineError(f"unicorn refused a hook: {unicorn.UcError(error)}")
        return int(hook.value)

    def _unhook(self, handle: int) -> None:
        uclib.uc_hook_del(self._handle, ctypes.c_size_t(handle))

    def _enable_aarch64_el1(self) -> None:
        # What firmware leaves: EL2 and EL3 exist in the model but were skipped at reset, and without RW set in both
        # QEMU takes EL1 for AArch32.  Order of the fields: crn, crm, op0, op1, op2, value.
        self._uc.reg_write(unicorn.arm64_const.UC_ARM64_REG_CP_REG, (1, 1, 3, 6, 0, 0x401))  # SCR_EL3 = RW | NS
        self._uc.reg_write(unicorn.arm64_const.UC_ARM64_REG_CP_REG, (1, 1, 3, 4, 0, 1 << 31))  # HCR_EL2 = RW

    # -- registers

    @property
    def pc(self) -> int:
        """The program counter.  Inside a callback it may be set; execution then goes on there."""
        return int(self.words[self._pc])

    @pc.setter
    def pc(self, value: int) -> None:
        self.words[self._pc] = value

    def read_register(self, name: str) -> int:
        """Return a register.  Raises KeyError for an unknown name."""
        slot = self._slots.get(name)
        if slot is not None:
            return int(self.words[slot])
        self._word.value = 0  # some have four bytes
        _reg_read(self._handle, self._public[name], self._word_at)
        return self._word.value

    def write_register(self, name: str, value: int) -> None:
        """Set a register.  Raises KeyError for an unknown name."""
        slot = self._slots.get(name)
        if slot is not None:
            self.words[slot] = value
        else:
            self._word.value = value
            _reg_write(self._handle, self._public[name], self._word_at)

    def write_vector(self, number: int, low: int, high: int) -> None:
        """Set a vector register of AArch64, and clear what it has beyond 128 bits."""
        self._uc.reg_write(unicorn.arm64_const.UC_ARM64_REG_V0 + number, high << 64 | low)

    def new_context(self) -> unicorn.unicorn_py3.unicorn.UcContext:
        """Return a place for all registers, filled with those there are now."""
        return self._uc.context_save()

    def save(self, context: unicorn.unicorn_py3.unicorn.UcContext) -> None:
        """Put all registers into a place for them."""
        self._uc.context_update(context)

    def restore(self, context: unicorn.unicorn_py3.unicorn.UcContext) -> None:
        """Take all registers from a place where they were saved; what addresses mean stays as it is."""
        _context_restore(self._handle, context.context)

    def vectors(self) -> tuple[memoryview, ...]:
        """Return the vector and floating-point registers as bytes of the CPU state."""
        places = vectors.locate(self._uc, self.isa.name, self._env, self.new_context())
        return tuple(memoryview((ctypes.c_uint8 * size).from_address(place)).cast("B") for place, size in places)

    def lose_reservation(self) -> None:
        """Forget what a load-exclusive has reserved, as a CPU does that returns from an exception.

        Unicorn takes a trap without one, and keeps the reservation.
        """
        offset = layout.RESERVATION.get(self.isa.name)
        if offset is not None:
            ctypes.c_uint64.from_address(self._env + offset).value = (1 << 64) - 1

    # -- address spaces of the host's

    def use(self, space: AddressSpace) -> None:
        """Change to another address space; between two runs, or in a trap.

        Raises TypeError if the guest has page tables.
        """
        if not isinstance(self.memory, HostMemory) or self._tlb is None:
            raise TypeError("the guest has page tables of its own")
        self.memory.use(space)
        self._tlb.flush()
        self.forget_user_blocks()

    def flush_page(self, address: int) -> None:
        """Forget what a page's address means: its mapping has changed."""
        if self._tlb is not None:
            self._tlb.flush_page(address)

    # -- code

    def read(self, address: int, size: int) -> bytes:
        """Return bytes at a virtual address of the current address space.  Raises `BadAddressError`."""
        return self.memory.read(address, size)

    def write_code(self, address: int, data: bytes) -> None:
        """Write instructions at a mapped virtual address, and make Unicorn forget its translation of what was there.

        Only `emu.patcher.Patcher` and loaders call this.  Raises `BadAddressError` if the address
        is not mapped.
        """
        places = self.memory.places(address, len(data), Access.WRITE)
        self.memory.write(address, data)
        self.refuse_in(address, len(data))
        # By physical address: Unicorn translates a virtual one as the CPU would in its present mode, and between two
        # runs that may be user mode, where a kernel address is a page fault that nobody takes and nothing is forgotten.
        for start, end in places:
            self._forget_translation(start, end)
        self._stale = True  # block sizes change with the code; the table is cleared before it is used again
        self._indices.clear()
        self._user_indices.clear()
        if self._in_code_hook:
            self._uc.reg_write(self._public[self.isa.registers.pc], self.pc)  # leave the block that is running
            self._left = True

    def refuse_in(self, address: int, size: int) -> None:
        """Look at code that was written: let the CPU refuse there what it refuses and Unicorn would execute."""
        if self._refusals is not None:
            self._refusals.written(self.memory, address, size)

    def code_changed(self) -> None:
        """Forget how many instructions the user's blocks have: code of some process was written."""
        if self._running:
            self.forget_user_blocks()
        else:
            self._stale = True

    def forget_code(self, physical: int, size: int) -> None:
        """Make Unicorn forget its translation of physical memory, whose content the guest has replaced.

        Stores through a mapping that may execute are seen; a kernel fills a page of text through
        its linear map, which may not, and the text of the page's last owner would run on.
        """
        self._forget_translation(physical, physical + size)
        self.code_changed()

    def _forget_translation(self, start: int, end: int) -> None:
        self._forget(self._handle, ctypes.c_uint64(start), ctypes.c_uint64(end))

    def on_code(self, address: int, callback: Callable[[], None]) -> None:
        """Call `callback` before the instruction at `address` runs.  Set it before that code is translated."""

        def hook(_uc: int, _address: int, _size: int, _words: int) -> None:
            if self._left:  # the callback wrote code, so the block was left, and the hook is met once more
                self._left = False
                return
            self._in_code_hook = True
            try:
                callback()
            except BaseException as error:  # noqa: BLE001  raised again by run
                self._fail(error)
            finally:
                self._in_code_hook = False
            if self._left:
                self._settle()

        function = _CODE_HOOK(hook)
        self._keep.append(function)
        self._hook(unicorn.UC_HOOK_CODE, function, address, address)

    # -- counting

    @property
    def instructions(self) -> int:
        """Instructions executed so far, exact where the CPU stands now; the instruction at pc is not included."""
        entry = self._state[_BLOCK]
        if not entry:
            return self._state[_TOTAL] - _PREPAID
        place = entry - self._entries_at >> 3
        address, numbers, pc = self._entries[place], self._entries[place + 1], self.words[self._pc]
        # Unicorn's own count is wrong by one where RISC-V's wfi is followed by something illegal: so the end is
        # decoded too.
        if not 0 <= pc - address <= numbers >> 32:
            return int(self._state[_TOTAL]) - _PREPAID
        return int(self._state[_TOTAL] - _PREPAID - (numbers & _COUNT) + self._index(address, pc))

    def forget_user_blocks(self) -> None:
        """Forget the sizes of user blocks: the address space is about to change."""
        ctypes.memset(self._table, 0, self._half * ctypes.sizeof(TableEntry))
        if self._user_indices:
            self._user_indices.clear()

    def discount(self, instructions: int) -> None:
        """Take instructions off the count: they stand for one that has been counted, or will not count when it runs."""
        self._state[_TOTAL] -= instructions

    def _settle(self) -> None:
        """Take back the instructions of the current block that were not executed: it was left at pc."""
        self._state[Word.TOTAL] = self.instructions + _PREPAID
        self._state[Word.BLOCK] = 0

    def _index(self, block: int, pc: int) -> int:
        """Return how many instructions lie between the start of a block and pc."""
        if self.isa.instruction_alignment == 4:
            return (pc - block) >> 2
        key = (block, pc)
        indices = self._indices if block >= self.isa.kernel_start else self._user_indices
        index = indices.get(key)
        if index is None:
            code = self.memory.read(block, pc - block)
            index = offset = 0
            while offset < len(code):
                offset += self.isa.instruction_length(code[offset : offset + 15]) or 1
                index += 1
            indices[key] = index
        return index

    # -- running

    def run(self, soft: int | None = None, hard: int | None = None) -> bool:
        """Run until `stop`, until the CPU waits for an interrupt, or until a deadline in instructions.

        `soft` is looked at in user mode, `hard` anywhere, both at block starts.  Returns True if
        the CPU waits.  Raises what a callback raised, `emu.engine.tlb.PageFaultError` where the
        host keeps the address space, and `GuestCrashError` when the CPU cannot go on.
        """
        soft = NEVER if soft is None else min(NEVER, soft + _PREPAID)
        hard = NEVER if hard is None else min(NEVER, hard + _PREPAID)
        self._emulate(soft, hard)
        if self._halted.value:
            self._halted.value = 0
            return True
        if not self._state[Word.STOPPED]:
            raise GuestCrashError(f"the CPU shut down at {self.pc:#x} (an exception while delivering one)", self.pc)
        return False

    def step(self) -> bool:
        """Execute one instruction; of a repeated string instruction of x86, one repetition.  Answers as `run`.

        An engine that steps should do nothing else: all code is translated anew when stepping
        begins or ends.
        """
        self._emulate(NEVER, NEVER, count=1)
        waits = bool(self._halted.value)
        self._halted.value = 0
        return waits

    def _emulate(self, soft: int, hard: int, count: int = 0) -> None:
        """Have Unicorn run, and raise what went wrong.  `count` 0: until something stops it."""
        if bool(count) is not self._steps:
            # Blocks of one instruction, or of many: Unicorn runs what it finds translated.
            self._uc.ctl_flush_tb()
            self._steps = bool(count)
        self._state[Word.SOFT], self._state[Word.HARD], self._state[Word.NEXT] = soft, hard, min(soft, hard)
        if self._stale:
            ctypes.memset(self._table, 0, ctypes.sizeof(self._table))
            self._indices.clear()
            self._user_indices.clear()
            self._stale = False
        self._state[Word.STOPPED] = 0
        if self._tlb is not None:
            self._tlb.missed = None
        self._running = True
        crash = _emu_start(self._handle, self.words[self._pc], _NOWHERE, 0, count)
        self._running = False
        if self._failure:
            failure, self._failure = self._failure, None
            raise failure
        self._settle()
        if not crash:
            return
        if self._tlb and self._tlb.missed:
            address, access = self._tlb.missed
            if self._tlb.failure:
                failure, self._tlb.failure = self._tlb.failure, None
                raise failure
            raise PageFaultError(self.pc if access is Access.EXECUTE else address, access, self.pc)
        raise GuestCrashError(f"the CPU cannot go on at {self.pc:#x}: {unicorn.UcError(crash)}", self.pc)

    def stop(self) -> None:
        """End the run under way before its next block; between two runs this does nothing.

        A deadline that has passed stops cleanly: emu_stop in a code hook would leave the hooked
        instruction to be met again.
        """
        self._state[Word.HARD] = self._state[Word.NEXT] = 0

    def stop_in_user_mode(self) -> None:
        """End the run under way before its next block of user mode."""
        self._state[Word.SOFT] = self._state[Word.NEXT] = 0

    def leave(self) -> None:
        """End the run under way now; from a trap or a system call."""
        self._state[Word.STOPPED] = 1
        self._uc.emu_stop()

    def interrupt(self) -> None:
        """Deliver the clock interrupt to the guest's vector; between runs, where the guest accepts interrupts."""
        if self.isa.name in layout.X86:
            uclib.do_interrupt_x86_hardirq_x86_64(
                ctypes.c_void_p(self._env), ctypes.c_int(_CLOCK_VECTOR), ctypes.c_int(1)
            )
            return
        if self.isa.name == "aarch64":
            ctypes.c_uint32.from_address(self._env + layout.ARM64_TARGET_EL).value = 1
        known = layout.LAYOUTS[self.isa.name]
        self._exception.value = ctypes.c_int32(known.asynchronous).value
        getattr(uclib, known.deliver)(ctypes.c_void_p(self._cpu))
        self._exception.value = -1

    # -- callbacks

    def _trap(self, number: int) -> int:
        if number == self._system_call_number:
            self._system_call()
            return HANDLED
        try:
            self._settle()  # a fault in mid-block
            answer = self.on_trap(number)
            if answer == HANDLED and self.isa.name in layout.X86:
                # QEMU would take the next exception for one that came while this one was delivered.
                ctypes.c_int32.from_address(self._env + layout.X86_OLD_EXCEPTION).value = -1
        except BaseException as error:  # noqa: BLE001  raised again by run
            self._fail(error)
            return HANDLED
        return answer

    def _system_call(self) -> None:
        """Serve a system call: it ends its block, and all of the block was executed."""
        self._state[Word.BLOCK] = 0
        if self.isa.name == "riscv64":
            self.pc += 4
        try:
            assert self._on_system_call is not None
            self._on_system_call()
        except BaseException as error:  # noqa: BLE001  raised again by run
            self._fail(error)

    def _breakpoint(self, address: int) -> int:
        try:
            return self.on_breakpoint(address)
        except BaseException as error:  # noqa: BLE001  raised again by run
            self._fail(error)
            return HANDLED

    def _late(self, address: int) -> int:
        try:
            return self.on_late(address)
        except BaseException as error:  # noqa: BLE001  raised again by run
            self._fail(error)
            return HANDLED

    def _inside(self) -> None:
        """Take back what of the current block comes after the instruction at pc."""
        self._settle()
        self._state[Word.TOTAL] += 1

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._uc.emu_stop()
