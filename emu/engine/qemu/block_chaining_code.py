"""The machine code that links ends of blocks: `emu.engine.qemu.block_chaining` shows what it does."""

from __future__ import annotations

from typing import Final

from emu.engine.qemu.block_chaining import ENTRIES, ENTRY, JUMP, OFTEN, Entry
from emu.engine.qemu.inlined_count import STALE_BLOCK
from emu.engine.state import Word
from emu.native.builder import Callee, Function, Module
from emu.native.values import Value

_WORD: Final = 8
# 2^64 by the golden ratio; bits of the product whose upper ones are the index.
_FACTOR: Final = 0x9E37_79B9_7F4A_7C15
_SHIFT: Final = 64 - (ENTRIES.bit_length() - 1)
# The entries in which an end may be.
_TRIED: Final = 16
# The places of the parts of a jump.
_OFFSET, _COUNT, _TAKEN, _DISTANCE, _CALL = 2, 6, 10, 12, 16
# cmpl $..,..(%rbp)    je ...    call ...
_COMPARE: Final = int.from_bytes(bytes.fromhex("81bd"), "little")
_EQUAL: Final = int.from_bytes(bytes.fromhex("0f84"), "little")
_CALLS: Final = 0xE8
# movq $..,..(%rbp)    mov %reg,..(%rbp)    mov %rbp,%rdi    movabs $..,%reg    mov $..,%reg    lea ..(%rip),%reg
_STORE_NUMBER: Final = int.from_bytes(bytes.fromhex("48c785"), "little")
_STORE: Final = 0x89
_ENV: Final = int.from_bytes(bytes.fromhex("488bfd"), "little")
_MOVE: Final = 0xB8
_LEA: Final = 0x8D
# Bytes of them.
_STORE_NUMBER_SIZE: Final = 11
_STORE_SIZE: Final = 7
_ENV_SIZE: Final = 3
_CALL_SIZE: Final = 5
_REX_W: Final = 0x48


class LinksCode:
    """The functions of one engine: `words` is the address of its words, `pc` the pc's place in env."""

    def __init__(self, module: Module, words: Value, pc: int) -> None:
        self._words = words
        self._pc = pc
        self._next_block, self._put_jump = Callee("next_block"), Callee("put_jump")
        self._leads_to = self._make_leads_to(module)
        self._entry = self._make_entry(module)
        self._holds = self._make_holds(module)
        self._aim = self._make_aim(module)
        self._make_leads_to_one(module)
        self._make_linked(module)
        self._make_stale(module)

    def _word(self, f: Function, word: Word) -> Value:
        return f.load(self._words, _WORD * word)

    def _make_leads_to(self, module: Module) -> Function:
        """U64 leads_to(behind, found): the pc to which an end leads, before `mov %rbp,%rdi`.

        `behind`: where that move begins; `found`: where the address of the end is stored, 0 if it
        does not lead to one address.
        """
        f = module.function("leads_to", 2, local=True)
        behind, found = f.parameters
        f.store(found, 0)
        number = f.sub(behind, _STORE_NUMBER_SIZE)
        plain = f.both(f.eq(f.load(number, 0, 3), _STORE_NUMBER), f.eq(f.load(number, 3, 4), self._pc))
        with f.when(plain):
            f.store(found, number)
            f.ret(f.load(number, 7, 4, signed=True))
        store = f.sub(behind, _STORE_SIZE)
        rex, operand = f.load(store, 0, 1), f.load(store, 2, 1)
        stores = f.both(f.eq(f.and_(rex, 0xFB), _REX_W), f.eq(f.load(store, 1, 1), _STORE))
        to_pc = f.both(f.eq(f.and_(operand, 0xC7), 0x85), f.eq(f.load(store, 3, 4), self._pc))
        f.ret_if(f.fails(f.both(stores, to_pc)), 0)
        register, upper = f.and_(f.lshr(operand, 3), 7), f.and_(f.lshr(rex, 2), 1)
        move = f.add(_MOVE, register)
        long = f.sub(store, 10)
        with f.when(f.both(f.eq(f.load(long, 0, 1), f.add(_REX_W, upper)), f.eq(f.load(long, 1, 1), move))):
            f.store(found, long)
            f.ret(f.load(long, 2))
        lea, field = f.sub(store, 7), f.or_(0x05, f.shl(register, 3))
        relative = f.both(f.eq(f.load(lea, 1, 1), _LEA), f.eq(f.load(lea, 2, 1), field))
        with f.when(f.both(f.eq(f.load(lea, 0, 1), f.or_(_REX_W, f.shl(upper, 2))), relative)):
            f.store(found, lea)
            f.ret(f.add(store, f.load(lea, 3, 4, signed=True)))
        short = f.sub(store, 5)
        moves = f.eq(f.load(short, 0, 1), move)
        # A register from r8 on has a prefix.
        prefixed = f.eq(f.load(short, -1, 1), 0x41)
        with f.when(f.both(moves, f.either(f.eq(upper, 0), prefixed))):
            f.store(found, f.sub(short, upper))
            f.ret(f.load(short, 1, 4))
        f.ret()
        return f

    def _make_leads_to_one(self, module: Module) -> None:
        """U64 leads_to_one(call): whether the end with this call may be linked."""
        f = module.function("leads_to_one", 1)
        (call,) = f.parameters
        f.ret_if(f.eq(self._word(f, Word.LINKS), 0), 0)
        moved = f.sub(call, _ENV_SIZE)
        f.ret_if(f.ne(f.load(moved, 0, _ENV_SIZE), _ENV), 0)
        found = f.room(16)
        f.call(self._leads_to, moved, found)
        f.ret(f.flag(f.ne(f.load(found), 0)))

    def _make_entry(self, module: Module) -> Function:
        """U64 link_entry(start): the entry of an end, or a free one; 0: there is no room."""
        f = module.function("link_entry", 1, local=True)
        (start,) = f.parameters
        table = self._word(f, Word.LINKS)
        place = f.variable(f.lshr(f.mul(start, _FACTOR), _SHIFT))
        last = f.add(place.get(), _TRIED)
        with f.loop() as loop:
            loop.leave_if(f.eq(place.get(), last))
            entry = f.add(table, f.mul(f.and_(place.get(), ENTRIES - 1), ENTRY))
            owner = f.load(entry, Entry.START)
            f.ret_if(f.either(f.eq(owner, start), f.eq(owner, 0)), entry)
            place.set(f.add(place.get(), 1))
        f.ret()
        return f

    def _dropped(self, f: Function) -> Value:
        """Return QEMU's count of dropped blocks."""
        return f.load(self._word(f, Word.INVALIDATIONS))

    def _make_holds(self, module: Module) -> Function:
        """U64 link_holds(code): whether it is a block's, as long as the count is what it is."""
        f = module.function("link_holds", 1, local=True)
        block = f.ugt(f.parameters[0], self._word(f, Word.LOWEST))
        f.ret(f.flag(f.both(block, f.eq(self._dropped(f), self._word(f, Word.INVALIDATED)))))
        return f

    def _make_aim(self, module: Module) -> Function:
        """U64 link_aim(start, code): let a jump lead to a block as long as the count is this one."""
        f = module.function("link_aim", 2, local=True)
        start, code = f.parameters
        f.store(start, self._dropped(f), _COUNT, 4)
        f.store(start, f.sub(code, f.add(start, _CALL)), _DISTANCE, 4)
        f.ret()
        return f

    def _make_linked(self, module: Module) -> None:
        """U64 linked_block(env, after): the code to go on with; its end becomes a jump.

        `after`: where the call would return to.
        """
        f = module.function("linked_block", 2)
        env, after = f.parameters
        pc = f.load(env, self._pc)
        code = f.call(self._next_block, env)
        f.ret_if(f.eq(f.call(self._holds, code), 0), code)
        found = f.room(16)
        led = f.call(self._leads_to, f.sub(after, _ENV_SIZE + _CALL_SIZE), found)
        start = f.load(found)
        # Bytes that only look like an end led elsewhere.
        f.ret_if(f.either(f.eq(start, 0), f.ne(led, pc)), code)
        entry = f.call(self._entry, start)
        f.ret_if(f.eq(entry, 0), code)
        f.store(entry, start, Entry.START)
        f.store(entry, pc, Entry.PC)
        f.store(entry, 0, Entry.TIMES)
        f.copy(f.add(entry, Entry.ORIGINAL), start, JUMP)
        f.store(entry, f.sub(after, start), Entry.CALL_END)
        f.store(start, _COMPARE, 0, 2)
        f.store(start, self._word(f, Word.LINK_OFFSET), _OFFSET, 4)
        f.store(start, _EQUAL, _TAKEN, 2)
        f.call(self._aim, start, code)
        stale = f.add(self._word(f, Word.OVERDUE), STALE_BLOCK)
        f.store(start, _CALLS, _CALL, 1)
        f.store(start, f.sub(stale, f.add(start, JUMP)), _CALL + 1, 4)
        f.ret(code)

    def _make_stale(self, module: Module) -> None:
        """U64 stale_block(env, after): the code to go on with, and to jump to from now on."""
        f = module.function("stale_block", 2)
        env, after = f.parameters
        start = f.sub(after, JUMP)
        entry = f.call(self._entry, start)
        f.store(env, f.load(entry, Entry.PC), self._pc)
        code = f.call(self._next_block, env)
        f.ret_if(f.eq(f.call(self._holds, code), 0), code)
        times = f.add(f.load(entry, Entry.TIMES), 1)
        f.store(entry, times, Entry.TIMES)
        with f.when(f.ult(times, OFTEN)):
            f.call(self._aim, start, code)
            f.ret(code)
        size = f.load(entry, Entry.CALL_END)
        f.copy(start, f.add(entry, Entry.ORIGINAL), JUMP)
        f.call(self._put_jump, f.sub(f.add(start, size), _CALL_SIZE))
        f.ret(code)
