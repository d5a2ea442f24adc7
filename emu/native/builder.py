"""Functions under construction: one method for each operation.

A function takes and returns unsigned 64-bit words; an address is a word too.  Conditions are a type
of their own, made by comparisons.  Methods append instructions at the current position of the
function; blocks of code are written as in Python:

    module = Module()
    function = module.function("sum", 2)  # u64 sum(u64 first, u64 count)
    address, count = function.parameters
    total, index = function.variable(0), function.variable(0)
    with function.loop() as loop:
        loop.leave_if(function.uge(index.get(), count))
        word = function.load(function.add(address, function.shl(index.get(), 3)))
        total.set(function.add(total.get(), word))
        index.set(function.add(index.get(), 1))
    function.ret(total.get())
    code = module.compiled()

The result is text in LLVM's assembly language. LLVM puts variables into registers and removes what
is not needed, so the text may be written for its reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from emu.native.compile import compiled
from emu.native.operations import Condition, Operations, Value, Word, text_of

# Weights of a branch that nearly always goes one way; names of the metadata.
_LIKELY: Final = ", !prof !90"
_UNLIKELY: Final = ", !prof !91"
_METADATA: Final = """!90 = !{!"branch_weights", i32 1000, i32 1}
!91 = !{!"branch_weights", i32 1, i32 1000}
"""


class Module:
    """Functions that are compiled together.

    They call each other by their `Function`, and all other code by its address: a number, or a
    `symbol` that the linker knows, so that the object code does not depend on the address.
    """

    def __init__(self) -> None:
        self._functions: list[Function] = []
        self._declared: dict[str, str] = {}

    def function(self, name: str, parameters: int, *, local: bool = False) -> Function:
        """Begin a function of `parameters` words; `local`: only this module calls it."""
        made = Function(self, name, parameters, local=local)
        self._functions.append(made)
        return made

    def external(self, name: str, parameters: int) -> Callee:
        """Return a function outside the module, by a name that the linker knows."""
        self.declare(name, f'declare i64 @"{name}"({", ".join(["i64"] * parameters)})')
        return Callee(name)

    def symbol(self, name: str) -> Value:
        """Return an address that the linker inserts."""
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

    def __init__(self, owner: Function, pointer: str) -> None:
        self._owner = owner
        self._pointer = pointer

    def get(self) -> Value:
        """Return its current value."""
        return self._owner.value(f"load i64, ptr {self._pointer}")

    def set(self, value: Word) -> None:
        """Change it."""
        self._owner.line(f"store i64 {text_of(value)}, ptr {self._pointer}")


class Loop:
    """A loop under construction."""

    def __init__(self, owner: Function, head: str, end: str) -> None:
        self._owner = owner
        self._head = head
        self._end = end

    def leave(self) -> None:
        """Leave the loop."""
        self._owner.go_to(self._end)

    def again(self) -> None:
        """Continue at the head of the loop."""
        self._owner.go_to(self._head)

    def leave_if(self, condition: Condition) -> None:
        """Leave the loop if a condition is true."""
        self._owner.branch_to(condition, self._end)

    def again_if(self, condition: Condition) -> None:
        """Continue at the head of the loop if a condition is true."""
        self._owner.branch_to(condition, self._head)


class Function(Operations, Callee):
    """A function under construction."""

    def __init__(self, module: Module, name: str, parameters: int, *, local: bool) -> None:
        Operations.__init__(self, module.declare)
        Callee.__init__(self, name)
        self.module = module
        self.parameters = tuple(Value(f"%p{index}") for index in range(parameters))
        self._linkage = "internal " if local else ""
        self._entry: list[str] = []
        self._ended = False

    @property
    def source(self) -> str:
        """The function as LLVM's assembly language."""
        parameters = ", ".join(f"i64 {name}" for name in self.parameters)
        entry = ["entry:", *self._entry, "  br label %body"]
        # The end of a function that has returned, or the code after an endless loop, is never reached.
        lines = "\n".join((*entry, *self._body, *(() if self._ended else ("  unreachable",))))
        return f'define {self._linkage}i64 @"{self.name}"({parameters}) nounwind {{\n{lines}\n}}\n'

    # Variables

    def variable(self, value: Word) -> Variable:
        """Return a variable that begins with a value."""
        pointer = self._new()
        self._entry.append(f"  {pointer} = alloca i64")
        made = Variable(self, pointer)
        made.set(value)
        return made

    def buffer(self, size: int) -> Value:
        """Return the address of `size` bytes that exist while the function runs, aligned to 16."""
        pointer = self._new()
        self._entry.append(f"  {pointer} = alloca i8, i64 {size}, align 16")
        return self.value(f"ptrtoint ptr {pointer} to i64")

    # Control flow

    def call(self, callee: Callee | Word, *arguments: Word) -> Value:
        """Call a function, or the code at an address, and return its result."""
        target = f'@"{callee.name}"' if isinstance(callee, Callee) else self._pointer(callee)
        words = ", ".join(f"i64 {text_of(argument)}" for argument in arguments)
        return self.value(f"call i64 {target}({words})")

    def ret(self, value: Word = 0) -> None:
        """Return a word."""
        self._end(f"ret i64 {text_of(value)}")

    def ret_if(self, condition: Condition, value: Word = 0, *, likely: bool | None = None) -> None:
        """Return a word if a condition is true."""
        with self.when(condition, likely=likely):
            self.ret(value)

    @contextmanager
    def when(self, condition: Condition, *, likely: bool | None = None) -> Iterator[None]:
        """Execute the code of the `with` block if a condition is true."""
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
        """Execute one of two blocks: `with f.choice(c) as (then, otherwise): with then: ...`."""
        body, other, end = self._label(), self._label(), self._label()
        self._choose(condition, body, other, likely)
        yield self._arm(body, end), self._arm(other, end)
        self._begin(end)

    @contextmanager
    def cases(self, value: Word) -> Iterator[Callable[..., AbstractContextManager[None]]]:
        """Execute the block of a number: `with f.cases(v) as case: with case(1): ...`.

        For other numbers no block is executed.
        """
        end = self._label()
        at = len(self._body)
        targets: list[str] = []
        self._end("")

        def case(*numbers: int) -> AbstractContextManager[None]:
            body = self._label()
            targets.extend(f"i64 {text_of(number)}, label %{body}" for number in numbers)
            return self._arm(body, end)

        yield case
        self._body[at] = f"  switch i64 {text_of(value)}, label %{end} [ {' '.join(targets)} ]"
        self._begin(end)

    @contextmanager
    def loop(self) -> Iterator[Loop]:
        """Repeat the code of the `with` block until it leaves the loop."""
        head, end = self._label(), self._label()
        self.go_to(head)
        self._begin(head)
        yield Loop(self, head, end)
        self.go_to(head)
        self._begin(end)

    def branch_to(self, condition: Condition, label: str) -> None:
        """Continue at a label if a condition is true, else here."""
        further = self._label()
        self._choose(condition, label, further, None)
        self._begin(further)

    def go_to(self, label: str) -> None:
        """Continue at a label, unless the code before has ended."""
        if not self._ended:
            self._end(f"br label %{label}")

    def label(self) -> str:
        """Return a new label, for `at` and `branch_to`."""
        return self._label()

    def at(self, label: str) -> None:
        """Put a label here; the code before it also continues here, unless it has ended."""
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
        """Append an instruction that ends this path."""
        if self._ended:  # the position is not reached
            self._begin(self._label())
        self.line(text)
        self._ended = True
