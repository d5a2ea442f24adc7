"""Functions that the clauses of one consumer share: time, memory, the current thread.

They are made once for each consumer, from the functions of the guest (`emu.native.guest`); a clause
calls them by their names.  Each calls Python if it cannot find the answer itself.

| function | result |
| --- | --- |
| `now()` | the time, in nanoseconds |
| `load1` ... `load8(address)` | a number; a fault sets flags (dtrace_load8 ... dtrace_load64) |
| `load_user1` ... `load_user8(address)` | a number of the current process |
| `name()` | `execname`, as an address of DIF |
| `text`, `take`, `compare` ... | `trapline.framework.native.subroutines.strings` |
| `reach`, `copy`, `allocate` ... | `trapline.framework.native.scratch` |
| `subroutine<number>` | `trapline.framework.native.subroutines.subroutines` |
| `speculate(id, bytes, alignment)`, `commit(id)`, `discard(id)` | `trapline.framework.native.speculation` |
| `make_way(buffer, bytes, alignment)` | `trapline.framework.native.reserve` |
| `stack`, `ustack` ... | `trapline.framework.native.stacks` |
| `late_by_python` ... `(index)` | argument 5 to 9 (`emu.native.guest.LateArguments`) |
| `pid()`, `tid()` ... | of the current thread, where the guest has them |
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from emu.displaced.cpu_core import CoreWord
from emu.native.builder import Callee, Function, Module
from emu.native.guest import NAME_SIZE, GuestCode, LateArguments, need
from emu.native.operations import Word
from trapline.framework.base.dif import Subr, Var
from trapline.framework.base.faults import BADALIGN
from trapline.framework.native import reserve, scratch, speculation, stacks
from trapline.framework.native.firing_words import FLAGS_OFFSET, Firing
from trapline.framework.native.stacks import UNKNOWN
from trapline.framework.native.subroutines import strings
from trapline.framework.native.subroutines.subroutines import SUBROUTINES, subroutine_name
from trapline.framework.native.subroutines.writer import Writing
from trapline.framework.native.upcall_code import Upcall, asks

if TYPE_CHECKING:
    from emu.isa.base import Isa

_WORD: Final = 8
_SIZES: Final = (1, 2, 4, 8)
# The bits of a pid.
_PID: Final = 0xFFFF_FFFF
# The number of stored names, a power of two; an entry is a name and the address of its interned copy.
_NAMES: Final = 64
_ENTRY: Final = NAME_SIZE + _WORD
# A multiplier for hashing: the golden ratio's (Knuth, The Art of Computer Programming 3, 6.4).
_GOLDEN: Final = 0x9E37_79B9_7F4A_7C15
# Functions of a guest whose result is the value of a built-in variable.
SCALARS: Final[Mapping[int, str]] = {
    Var.CURTHREAD: "address",
    Var.TID: "tid",
    Var.PID: "pid",
    Var.PPID: "ppid",
    Var.UID: "uid",
    Var.GID: "gid",
    Var.ERRNO: "errno",
    Var.VTIMESTAMP: "thread_time",
}
_PLACES: Final = ("kernel_pointer", "user_pointer")


class Support:
    """The functions that one consumer's clauses share; `module` has them."""

    def __init__(self, isa: Isa, guest: GuestCode, string_size: int, speculations: int) -> None:
        self.module = Module()
        self._string_size = string_size
        self.names: set[str] = {"now"}
        """The functions that there are."""
        self._guest = guest
        self._isa = isa
        for name in _PLACES:
            self._place(name)
        self._scalar("now", Upcall.NOW)
        if "cpu" in guest.functions:
            self._scalar("cpu", Upcall.SCALAR, Var.CPU)
        for variable, name in SCALARS.items():
            if name in guest.functions:
                self._scalar(name, Upcall.SCALAR, variable)
        if {"pid", "ppid"} <= guest.functions.keys():
            self._progeny()
        if "execname" in guest.functions:
            self._execname()
        if "wall" in guest.functions:
            self._scalar("wall", Upcall.SCALAR, Var.WALLTIMESTAMP)
        if "kernel_callers" in guest.functions:
            self._stacks()
        if "user_register" in guest.functions:
            f = self._function("user_register", 1)
            guest.functions["user_register"](f, asks(f, Upcall.ELEMENT, Var.UREGS, *f.parameters))
        if "register" in guest.functions:
            f = self._function("register", 1)
            slow = asks(f, Upcall.ELEMENT, Var.REGS, *f.parameters)
            # Only while machine code serves a trap is the context that of the stopped CPU.
            need(f, slow, f.load(self.module.symbol("core"), _WORD * CoreWord.FIRING))
            guest.functions["register"](f, slow)
        if "user_callers" in guest.functions:
            self._user_stacks()
        for name in LateArguments:
            self._late_argument(name)
        scratch.write_reach(self._function("reach", 2))
        reserve.write_make_way(self._function("make_way", 3))
        for size in _SIZES:
            self._load(size)
            self._load_user(size)
        self._strings()
        self._forget_tokens()
        self._speculations(speculations)

    def _forget_tokens(self) -> None:
        """Write `forget_tokens()`, which a firing does first: strtok() begins without a string."""
        f = self._function("forget_tokens", 3)
        for name in ("strtok", "strtok_limit"):
            f.store(f.module.symbol("firing"), 0, Firing.offset(name))
        f.ret()

    @property
    def symbols(self) -> dict[str, int]:
        """The names of the guest's that the functions use, and their own memory."""
        self._names = (ctypes.c_uint8 * (_NAMES * _ENTRY))()
        self._starts = (ctypes.c_uint8 * (stacks.START_SIZE << stacks.STARTS_BITS))()
        memory = {"names": self._names, "starts": self._starts}
        own = {name: ctypes.addressof(place) for name, place in memory.items()}
        return {**self._guest.symbols, **own}

    def _function(self, name: str, parameters: int) -> Function:
        self.names.add(name)
        return self.module.function(name, parameters)

    def _place(self, name: str) -> None:
        """Write a function that finds memory of the guest, if the guest has such a function."""
        f = self._function(name, 2)
        writer = self._guest.functions.get(name)
        if writer is None:
            f.ret(0)
        else:
            writer(f, lambda: 0)

    def _scalar(self, name: str, which: Upcall, *operands: int) -> None:
        """Write a function without parameters, by the guest or by Python."""
        f = self._function(name, 0)
        slow = asks(f, which, *operands)
        writer = self._guest.functions.get(name)
        if writer is None:
            f.ret(slow())
        else:
            writer(f, slow)

    def _execname(self) -> None:
        """Write `name`: Python interns a name, and the text is remembered with its address."""
        text = self._function("execname_text", 0)
        self._guest.functions["execname"](text, lambda: 0)
        f = self._function("name", 0)
        slow = asks(f, Upcall.SCALAR, Var.EXECNAME)
        place = f.call(Callee("execname_text"))
        with f.when(f.eq(place, 0), likely=False):
            f.ret(slow())
        words = [f.load(place), f.load(place, _WORD), f.load(place, 2 * _WORD, 4)]
        hashed = f.mul(f.xor(words[0], f.xor(f.mul(words[1], 3), words[2])), _GOLDEN)
        index = f.lshr(hashed, 64 - (_NAMES - 1).bit_length())
        entry = f.add(self.module.symbol("names"), f.mul(index, _ENTRY))
        same = f.eq(f.load(entry), words[0])
        for number, word in enumerate(words[1:], 1):
            same = f.both(same, f.eq(f.load(entry, _WORD * number), word))
        known = f.load(entry, NAME_SIZE)
        with f.when(f.both(same, f.ne(known, 0)), likely=True):
            f.ret(known)
        asked = slow()
        for number, word in enumerate(words):
            f.store(entry, word, _WORD * number)
        f.store(entry, asked, NAME_SIZE)
        f.ret(asked)

    def _stacks(self) -> None:
        """Write `stack(place, limit)`, which returns 1 if it has found callers, and `caller`."""
        self._guest.functions["kernel_callers"](self._function("kernel_callers", 2), lambda: UNKNOWN)
        stacks.write_stack(self._function("stack", 2))
        f = self._function("caller", 0)
        stacks.write_caller(f, asks(f, Upcall.SCALAR, Var.CALLER))
        f = self._function("stackdepth", 0)
        stacks.write_depth(f, asks(f, Upcall.SCALAR, Var.STACKDEPTH))

    def _user_stacks(self) -> None:
        """Write the functions on a user program's stack: `ustack(place, limit)` and the variables."""
        f = self._function("user_start", 1)
        stacks.write_user_start(f, asks(f, Upcall.USER_START, *f.parameters))
        self._guest.functions["user_callers"](self._function("user_callers", 2), lambda: UNKNOWN)
        stacks.write_user_stack(self._function("ustack", 2))
        f = self._function("ucaller", 0)
        stacks.write_user_caller(f, asks(f, Upcall.SCALAR, Var.UCALLER))
        f = self._function("ustackdepth", 0)
        if self._isa.calling.user_depth:
            stacks.write_user_depth(f, asks(f, Upcall.SCALAR, Var.USTACKDEPTH))
        else:
            f.ret(0)

    def _late_argument(self, name: str) -> None:
        """Write a function that finds argument 5 to 9, by the guest or by Python."""
        f = self._function(name, 1)
        slow = asks(f, Upcall.SCALAR, f.add(f.parameters[0], Var.ARG0))
        writer = self._guest.functions.get(name)
        if writer is None:
            f.ret(slow())
        else:
            writer(f, slow)

    def _progeny(self) -> None:
        """Write `progenyof`: Python follows the parents if the guest cannot."""
        f = self._function(subroutine_name(Subr.PROGENYOF), 0)
        w = Writing(f, self._string_size, asks(f, Upcall.SUBROUTINE, Subr.PROGENYOF))
        wanted = f.and_(w.argument(0), _PID)
        for name in ("pid", "ppid"):
            f.ret_if(f.eq(f.call(Callee(name)), wanted), 1)
        if "descends" in self._guest.functions:
            self._guest.functions["descends"](self._function("descends", 1), lambda: UNKNOWN)
            found = f.call(Callee("descends"), wanted)
            f.ret_if(f.ne(found, UNKNOWN), found)
        f.ret(w.slow())

    def _strings(self) -> None:
        """Write the functions on strings and on scratch space."""
        strings.write_text(self._function("text", 2))
        strings.write_user_text(self._function("user_text", 2))
        for name, write in (
            ("take", partial(strings.write_take, finder="text")),
            ("take_user", partial(strings.write_take, finder="user_text")),
            ("keep", strings.write_keep),
            ("bring", partial(scratch.write_bring, finder="reach")),
            ("bring_user", partial(scratch.write_bring, finder="user_pointer")),
            ("print_memory", scratch.write_print_memory),
        ):
            write(Writing(self._function(name, 3), self._string_size, lambda: 0))
        strings.write_compare(self._writing("compare", 2, Upcall.COMPARE))
        scratch.write_allocate(self._writing("allocate", 1, Upcall.ALLOCATE))
        scratch.write_copy(self._writing("copy", 3, Upcall.COPY))
        for size in _SIZES:
            f = self._function(f"write{size}", 2)
            address, value = f.parameters
            slow = asks(f, Upcall.STORE, address, size, value)
            scratch.write_store(Writing(f, self._string_size, slow), size)
        for number, subroutine in SUBROUTINES.items():
            f = self._function(subroutine_name(number), 0)
            subroutine(Writing(f, self._string_size, asks(f, Upcall.SUBROUTINE, number)))

    def _speculations(self, count: int) -> None:
        """Write the functions on speculations, of which there are `count`."""
        begin = self._function(subroutine_name(Subr.SPECULATION), 0)
        speculation.write_speculation(begin, count, asks(begin, Upcall.SUBROUTINE, Subr.SPECULATION))
        for name, write, parameters in (
            ("speculate", speculation.write_speculate, 3),
            ("commit", speculation.write_commit, 1),
            ("discard", speculation.write_discard, 1),
        ):
            f = self._function(name, parameters)
            write(f, count, asks(f, Upcall[name.upper()], *f.parameters))

    def _writing(self, name: str, parameters: int, which: Upcall) -> Writing:
        """Begin a function that may call Python with the same parameters."""
        f = self._function(name, parameters)
        return Writing(f, self._string_size, asks(f, which, *f.parameters))

    def _load(self, size: int) -> None:
        """Write a load of DTrace's own memory or the kernel's."""
        f = self._function(f"load{size}", 1)
        (address,) = f.parameters
        slow = asks(f, Upcall.LOAD, size, address)
        if self._isa.strict_alignment and size > 1:
            self._refuse_crooked(f, address, size)
        found = f.call(Callee("reach"), address, size)
        with f.when(f.ne(found, 0), likely=True):
            f.ret(f.load(found, size=size))
        f.ret(slow())

    def _refuse_crooked(self, f: Function, address: Word, size: int) -> None:
        """Fault at an address that is not aligned (FreeBSD's DTRACE_ALIGNCHECK)."""
        core = self.module.symbol("core")
        with f.when(f.ne(f.and_(address, size - 1), 0), likely=False):
            f.store(core, f.or_(f.load(core, FLAGS_OFFSET), BADALIGN), FLAGS_OFFSET)
            f.store(core, address, _WORD * CoreWord.ILLVAL)
            f.ret(0)

    def _load_user(self, size: int) -> None:
        """Write a load of the current process's memory."""
        f = self._function(f"load_user{size}", 1)
        (address,) = f.parameters
        slow = asks(f, Upcall.LOAD_USER, size, address)
        with f.when(f.ult(address, self._isa.kernel_start - size), likely=True):
            found = f.call(Callee("user_pointer"), address, size)
            with f.when(f.ne(found, 0), likely=True):
                f.ret(f.load(found, size=size))
        f.ret(slow())
