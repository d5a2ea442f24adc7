"""Functions under construction: one method for each operation.

A function takes and returns unsigned 64-bit words; an address is a word too.  Conditions are a type
of their own, made by comparisons.  Methods append instructions where the function stands; blocks of
code are written as Python writes them:

    module = Module()
    function = module.function("sum", 2)  # u64 sum(u64 first, u64 count)
    address, count = function.parameters
    total, place = function.variable(0), function.variable(0)
    with function.loop() as loop:
        loop.leave_if(function.uge(place.get(), count))
        word = function.load(function.add(address, function.shl(place.get(), 3)))
        total.set(function.add(total.get(), word))
        place.set(function.add(place.get(), 1))
    function.ret(total.get())
    code = module.compiled()

What is made is text, LLVM's assembly language.  LLVM puts variables into registers and drops what
is not needed, so that the text may be written for its reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from emu.native.block import WORD_SIZE
from emu.native.compiling import compiled
from emu.words import WORD_MASK

# Weights of a branch that nearly always goes one way; names of the metadata.
_LIKELY: Final = ", !prof !90"
_UNLIKELY: Final = ", !prof !91"
_METADATA: Final = """!90 = !{!"branch_weights", i32 1000, i32 1}
!91 = !{!"branch_weights", i32 1, i32 1000}
"""
_COPY: Final = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
_FILL: Final = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"


class Value(str):
    """A 64-bit word in machine code: how the text names it."""

    __slots__ = ()


class Condition(str):
    """A truth value in machine code: how the text names it."""

    __slots__ = ()


# What methods take for a word: Python's numbers stand for constants.
Word = Value | int


def _text(word: Word) -> str:
    """Return a word as the text has it; a number is cut to 64 bits, and signed."""
    if isinstance(word, str):
        return word
    word &= WORD_MASK
    return str(word - (word >> 63 << 64))


class Module:
    """Functions that are compiled together.

    They call each other by their `Function`, and what is elsewhere by an address: a number, or a
    `symbol` that the linker knows, so that the object code is the same wherever that is.
    """

    def __init__(self) -> None:
        self._functions: list[Function] = []
        self._declared: dict[str, str] = {}

    def function(self, name: str, parameters: int, *, local: bool = False) -> Function:
        """Begin a function of as many words; `local`: only this module calls it."""
        made = Function(self, name, parameters, local=local)
        self._functions.append(made)
        return made

    def external(self, name: str, parameters: int) -> Callee:
        """Return a function that is elsewhere, by a name that the linker knows."""
        self.declare(name, f'declare i64 @"{name}"({", ".join(["i64"] * parameters)})')
        return Callee(name)

    def symbol(self, name: str) -> Value:
        """Return an address that the linker puts in."""
        self.declare(name, f'@"{name}" = external global i8')
        return Value(f'ptrtoint (ptr @"{name}" to i64)')

    def data(self, name: str, content: bytes) -> Value:
        """Return the address of constant bytes."""
        escaped = "".join(f"\\{byte:02x}" for byte in content)
        self.declare(name, f'@"{name}" = internal constant [{len(content)} x i8] c"{escaped}", align 8')
        return Value(f'ptrtoint (ptr @"{name}" to i64)')

    def declare(self, name: str, text: str) -> None:
        """Declare something that functions use, once."""
        self._declared[name] = text

    @property
    def source(self) -> str:
        """The module as LLVM's assembly language, not optimized."""
        functions = "\n".join(function.source for function in self._functions)
        return "\n".join((*self._declared.values(), functions, _METADATA))

    def compiled(self, kind: str = "module") -> bytes:
        """Return the object code, from the disk if the same source was compiled before."""
        source = self.source
        return compiled(kind, source.encode(), lambda: source)


class Callee:
    """Something that can be called, by its name."""

    def __init__(self, name: str) -> None:
        self.name = name


class Variable:
    """A word that changes."""

    def __init__(self, owner: Function, place: str) -> None:
        self._owner = owner
        self._place = place

    def get(self) -> Value:
        """Return its value here."""
        return self._owner.value(f"load i64, ptr {self._place}")

    def set(self, value: Word) -> None:
        """Change it."""
        self._owner.line(f"store i64 {_text(value)}, ptr {self._place}")


class Loop:
    """A loop under construction."""

    def __init__(self, owner: Function, head: str, end: str) -> None:
        self._owner = owner
        self._head = head
        self._end = end

    def leave_if(self, condition: Condition) -> None:
        """Go on behind the loop if a condition holds."""
        self._owner.branch_to(condition, self._end)

    def again_if(self, condition: Condition) -> None:
        """Go on at the head of the loop if a condition holds."""
        self._owner.branch_to(condition, self._head)


class Function(Callee):
    """A function under construction."""

    def __init__(self, module: Module, name: str, parameters: int, *, local: bool) -> None:
        super().__init__(name)
        self.module = module
        self.parameters = tuple(Value(f"%p{index}") for index in range(parameters))
        self._linkage = "internal " if local else ""
        self._entry: list[str] = []
        self._body = ["body:"]
        self._count = 0
        self._ended = False

    @property
    def source(self) -> str:
        """The function as LLVM's assembly language."""
        parameters = ", ".join(f"i64 {name}" for name in self.parameters)
        entry = ["entry:", *self._entry, "  br label %body"]
        # Nobody comes to the end of a function that has returned, or behind a loop that never leaves.
        lines = "\n".join((*entry, *self._body, *(() if self._ended else ("  unreachable",))))
        return f'define {self._linkage}i64 @"{self.name}"({parameters}) nounwind {{\n{lines}\n}}\n'

    def line(self, text: str) -> None:
        """Append an instruction that has no result."""
        self._body.append(f"  {text}")

    def _named(self, text: str) -> str:
        name = self._new()
        self.line(f"{name} = {text}")
        return name

    def _new(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def value(self, text: str) -> Value:
        """Append an instruction whose result is a word."""
        return Value(self._named(text))

    def condition(self, text: str) -> Condition:
        """Append an instruction whose result is a truth value."""
        return Condition(self._named(text))

    # -- values

    def word(self, value: Word) -> Value:
        """Return a word; a number becomes a constant."""
        return Value(_text(value))

    def variable(self, value: Word) -> Variable:
        """Return a variable that begins with a value."""
        place = self._new()
        self._entry.append(f"  {place} = alloca i64")
        made = Variable(self, place)
        made.set(value)
        return made

    def room(self, size: int) -> Value:
        """Return the address of `size` bytes that are there while the function runs, aligned to 16."""
        place = self._new()
        self._entry.append(f"  {place} = alloca i8, i64 {size}, align 16")
        return self.value(f"ptrtoint ptr {place} to i64")

    def _binary(self, operation: str, left: Word, right: Word) -> Value:
        return self.value(f"{operation} i64 {_text(left)}, {_text(right)}")

    def add(self, left: Word, right: Word) -> Value:
        """Return `left` + `right`."""
        return self._binary("add", left, right)

    def sub(self, left: Word, right: Word) -> Value:
        """Return `left` - `right`."""
        return self._binary("sub", left, right)

    def mul(self, left: Word, right: Word) -> Value:
        """Return the low word of the product."""
        return self._binary("mul", left, right)

    def and_(self, left: Word, right: Word) -> Value:
        """Return the bits that both have."""
        return self._binary("and", left, right)

    def or_(self, left: Word, right: Word) -> Value:
        """Return the bits that either has."""
        return self._binary("or", left, right)

    def xor(self, left: Word, right: Word) -> Value:
        """Return the bits that one has."""
        return self._binary("xor", left, right)

    def shl(self, value: Word, count: Word) -> Value:
        """Return a word shifted left; the count must be below 64."""
        return self._binary("shl", value, count)

    def lshr(self, value: Word, count: Word) -> Value:
        """Return a word shifted right, filled with zeros; the count must be below 64."""
        return self._binary("lshr", value, count)

    def ashr(self, value: Word, count: Word) -> Value:
        """Return a word shifted right, filled with its sign; the count must be below 64."""
        return self._binary("ashr", value, count)

    def udiv(self, left: Word, right: Word) -> Value:
        """Return an unsigned quotient; `right` must not be 0."""
        return self._binary("udiv", left, right)

    def urem(self, left: Word, right: Word) -> Value:
        """Return an unsigned remainder; `right` must not be 0."""
        return self._binary("urem", left, right)

    def sdiv(self, left: Word, right: Word) -> Value:
        """Return a signed quotient, cut; not of 0, nor of the least number by -1."""
        return self._binary("sdiv", left, right)

    def srem(self, left: Word, right: Word) -> Value:
        """Return a signed remainder; not of 0, nor of the least number by -1."""
        return self._binary("srem", left, right)

    def not_(self, value: Word) -> Value:
        """Return a word with all bits changed."""
        return self.xor(value, -1)

    def neg(self, value: Word) -> Value:
        """Return 0 - `value`."""
        return self.sub(0, value)

    def low(self, value: Word, size: int, *, signed: bool = False) -> Value:
        """Return the low `size` bytes, extended again."""
        if size == WORD_SIZE:
            return self.word(value)
        cut = self._named(f"trunc i64 {_text(value)} to i{8 * size}")
        return self.value(f"{'sext' if signed else 'zext'} i{8 * size} {cut} to i64")

    # -- conditions

    def _compare(self, how: str, left: Word, right: Word) -> Condition:
        return self.condition(f"icmp {how} i64 {_text(left)}, {_text(right)}")

    def eq(self, left: Word, right: Word) -> Condition:
        """Return whether they are equal."""
        return self._compare("eq", left, right)

    def ne(self, left: Word, right: Word) -> Condition:
        """Return whether they differ."""
        return self._compare("ne", left, right)

    def ult(self, left: Word, right: Word) -> Condition:
        """Return whether `left` < `right`, unsigned."""
        return self._compare("ult", left, right)

    def ule(self, left: Word, right: Word) -> Condition:
        """Return whether `left` <= `right`, unsigned."""
        return self._compare("ule", left, right)

    def ugt(self, left: Word, right: Word) -> Condition:
        """Return whether `left` > `right`, unsigned."""
        return self._compare("ugt", left, right)

    def uge(self, left: Word, right: Word) -> Condition:
        """Return whether `left` >= `right`, unsigned."""
        return self._compare("uge", left, right)

    def slt(self, left: Word, right: Word) -> Condition:
        """Return whether `left` < `right`, signed."""
        return self._compare("slt", left, right)

    def sle(self, left: Word, right: Word) -> Condition:
        """Return whether `left` <= `right`, signed."""
        return self._compare("sle", left, right)

    def sgt(self, left: Word, right: Word) -> Condition:
        """Return whether `left` > `right`, signed."""
        return self._compare("sgt", left, right)

    def sge(self, left: Word, right: Word) -> Condition:
        """Return whether `left` >= `right`, signed."""
        return self._compare("sge", left, right)

    def both(self, left: Condition, right: Condition) -> Condition:
        """Return whether both hold; both are computed."""
        return self.condition(f"and i1 {left}, {right}")

    def either(self, left: Condition, right: Condition) -> Condition:
        """Return whether one holds; both are computed."""
        return self.condition(f"or i1 {left}, {right}")

    def fails(self, condition: Condition) -> Condition:
        """Return whether a condition does not hold."""
        return self.condition(f"xor i1 {condition}, true")

    def flag(self, condition: Condition) -> Value:
        """Return 1 if a condition holds, else 0."""
        return self.value(f"zext i1 {condition} to i64")

    def select(self, condition: Condition, taken: Word, other: Word) -> Value:
        """Return one of two words; both are computed."""
        return self.value(f"select i1 {condition}, i64 {_text(taken)}, i64 {_text(other)}")

    # -- memory

    def _place(self, address: Word, offset: Word = 0) -> str:
        sum_ = address if isinstance(offset, int) and not offset else self.add(address, offset)
        return self._named(f"inttoptr i64 {_text(sum_)} to ptr")

    def load(self, address: Word, offset: Word = 0, size: int = 8, *, signed: bool = False) -> Value:
        """Return the `size` bytes at `address` + `offset`, which need not be aligned."""
        loaded = self._named(f"load i{8 * size}, ptr {self._place(address, offset)}, align 1")
        if size == WORD_SIZE:
            return Value(loaded)
        return self.value(f"{'sext' if signed else 'zext'} i{8 * size} {loaded} to i64")

    def store(self, address: Word, value: Word, offset: Word = 0, size: int = 8) -> None:
        """Write the low `size` bytes of a word to `address` + `offset`."""
        cut = _text(value)
        if size != WORD_SIZE:
            cut = self._named(f"trunc i64 {cut} to i{8 * size}")
        self.line(f"store i{8 * size} {cut}, ptr {self._place(address, offset)}, align 1")

    def copy(self, target: Word, source: Word, size: Word) -> None:
        """Copy bytes; the places may not overlap."""
        self.module.declare("memcpy", _COPY)
        places = f"ptr {self._place(target)}, ptr {self._place(source)}"
        self.line(f"call void @llvm.memcpy.p0.p0.i64({places}, i64 {_text(size)}, i1 false)")

    def fill(self, target: Word, value: int, size: Word) -> None:
        """Write one byte `size` times."""
        self.module.declare("memset", _FILL)
        self.line(f"call void @llvm.memset.p0.i64(ptr {self._place(target)}, i8 {value}, i64 {_text(size)}, i1 false)")

    def same(self, left: Word, right: Word, size: Word) -> Condition:
        """Return whether `size` bytes are the same in two places."""
        self.module.declare("memcmp", "declare i32 @memcmp(ptr, ptr, i64)")
        places = f"ptr {self._place(left)}, ptr {self._place(right)}"
        found = self._named(f"call i32 @memcmp({places}, i64 {_text(size)})")
        return self.condition(f"icmp eq i32 {found}, 0")

    # -- the way through

    def call(self, callee: Callee | Word, *arguments: Word) -> Value:
        """Call a function, or what is at an address, and return its result."""
        place = f'@"{callee.name}"' if isinstance(callee, Callee) else self._place(callee)
        words = ", ".join(f"i64 {_text(argument)}" for argument in arguments)
        return self.value(f"call i64 {place}({words})")

    def ret(self, value: Word = 0) -> None:
        """Return a word."""
        self._end(f"ret i64 {_text(value)}")

    def ret_if(self, condition: Condition, value: Word = 0, *, likely: bool | None = None) -> None:
        """Return a word if a condition holds."""
        with self.when(condition, likely=likely):
            self.ret(value)

    @contextmanager
    def when(self, condition: Condition, *, likely: bool | None = None) -> Iterator[None]:
        """Do what follows in the `with` block if a condition holds."""
        body, end = self._label(), self._label()
        self._choose(condition, body, end, likely)
        self._begin(body)
        yield
        self.go_to(end)
        self._begin(end)

    @contextmanager
    def choice(
        self, condition: Condition, *, likely: bool | None = None
    ) -> Iterator[tuple[AbstractContextManager[None], AbstractContextManager[None]]]:
        """Do one thing or another: `with f.choice(c) as (then, otherwise): with then: ...`."""
        body, other, end = self._label(), self._label(), self._label()
        self._choose(condition, body, other, likely)
        yield self._arm(body, end), self._arm(other, end)
        self._begin(end)

    @contextmanager
    def cases(self, value: Word) -> Iterator[Callable[..., AbstractContextManager[None]]]:
        """Do what belongs to a number: `with f.cases(v) as case: with case(1): ...`.

        Nothing is done for other numbers.
        """
        end = self._label()
        at = len(self._body)
        targets: list[str] = []
        self._end("")

        def case(*numbers: int) -> AbstractContextManager[None]:
            body = self._label()
            targets.extend(f"i64 {_text(number)}, label %{body}" for number in numbers)
            return self._arm(body, end)

        yield case
        self._body[at] = f"  switch i64 {_text(value)}, label %{end} [ {' '.join(targets)} ]"
        self._begin(end)

    @contextmanager
    def loop(self) -> Iterator[Loop]:
        """Do what follows in the `with` block again and again, until it leaves."""
        head, end = self._label(), self._label()
        self.go_to(head)
        self._begin(head)
        yield Loop(self, head, end)
        self.go_to(head)
        self._begin(end)

    def branch_to(self, condition: Condition, label: str) -> None:
        """Go on at a label if a condition holds, else here."""
        further = self._label()
        self._choose(condition, label, further, None)
        self._begin(further)

    def go_to(self, label: str) -> None:
        """Go on at a label, unless the code before has ended."""
        if not self._ended:
            self._end(f"br label %{label}")

    def label(self) -> str:
        """Return a new label, for `at` and `branch_to`."""
        return self._label()

    def at(self, label: str) -> None:
        """Let a label be here; the code before it goes on here too, unless it has ended."""
        self.go_to(label)
        self._begin(label)

    @contextmanager
    def _arm(self, body: str, end: str) -> Iterator[None]:
        self._begin(body)
        yield
        self.go_to(end)

    def _choose(self, condition: Condition, body: str, other: str, likely: bool | None) -> None:
        weights = "" if likely is None else _LIKELY if likely else _UNLIKELY
        self._end(f"br i1 {condition}, label %{body}, label %{other}{weights}")

    def _label(self) -> str:
        self._count += 1
        return f"l{self._count}"

    def _begin(self, label: str) -> None:
        self._body.append(f"{label}:")
        self._ended = False

    def _end(self, text: str) -> None:
        """Append an instruction after which this way does not go on."""
        if self._ended:  # nobody comes here
            self._begin(self._label())
        self.line(text)
        self._ended = True
