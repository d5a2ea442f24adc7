"""The glue: a Python class that offers the user's code the rest of its kernel.

    class Mine(Glue):
        entries = ("scan",)
        data = {"verbose": 4}

        @extern("void *my_alloc(size_t size)")
        def my_alloc(self, size):
            return self.code.allocate(size)

`entries` are the functions that the objects must define.  Each function with `extern` is a gate: an
undefined symbol of that name is bound to it, its arguments are read by the C prototype and the
ISA's calling convention, and its result is returned.  A `const char *` arrives as a str.
`data` has undefined variables, with their sizes in bytes; they are zero until `set_up` sets them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from emu.guest.function import FunctionFaultError
from trapline.lab.objects.findings import Failure, ObjectReport
from trapline.lab.objects.prototypes import Prototype, prototype
from trapline.lab.objects.request import Request, RequestError
from trapline.lab.objects.user_code import UserCode

if TYPE_CHECKING:
    from trapline.lab.objects.build import Recipe

_F = TypeVar("_F", bound=Callable[..., Any])
_PROTOTYPE: Final = "c_prototype"


class GluePanicError(Exception):
    """The code under test has called its kernel's panic."""


def extern(declaration: str) -> Callable[[_F], _F]:
    """Mark a method of a glue as the function with this C prototype.

    Raises `trapline.lab.objects.prototypes.PrototypeError`.
    """
    found = prototype(declaration)

    def mark(method: _F) -> _F:
        setattr(method, _PROTOTYPE, found)
        return method

    return mark


class Glue:
    """The base class of glues: it has the functions that compilers call, memory and panic."""

    entries: ClassVar[Sequence[str]] = ()
    """The functions that the objects must define."""
    data: ClassVar[Mapping[str, int]] = {}
    """The sizes in bytes of the variables that the glue defines, by name."""
    sweeps: ClassVar[bool] = False
    """Whether `examine` can ask a decoder about all encodings (`Request.sweep`)."""
    recipe: ClassVar[Recipe | None] = None
    """The recipe by which `trapline object build` compiles the sources."""

    def __init__(self, code: UserCode) -> None:
        self.code = code

    def set_up(self) -> None:
        """Prepare the data; called once, when everything is linked and loaded."""

    def check(self) -> Iterable[str]:
        """Call the code under test, and yield a sentence for each finding; for a glue of your own.

        What a call raises ends the check, and is a finding, too.
        """
        raise NotImplementedError

    def examine(self, request: Request, report: ObjectReport) -> None:
        """Examine the code under test, and add the findings to the report."""
        _ = request
        code = self.code
        try:
            for finding in self.check():
                report.failures.append(Failure("", finding, ""))
        except NotImplementedError:
            raise RequestError(f"{type(self).__name__} has no method 'check'") from None
        except FunctionFaultError as error:
            report.failures.append(Failure("", str(error), code.where(error.pc)))
        except GluePanicError as error:
            report.failures.append(Failure("", str(error), code.where(code.guest.engine.pc)))

    @classmethod
    def externs(cls) -> Mapping[str, tuple[str, Prototype]]:
        """Return the gates: the C name -> (the method's name, the prototype)."""
        found = {}
        for name in dir(cls):
            declared = getattr(getattr(cls, name), _PROTOTYPE, None)
            if declared is not None:
                found[declared.name] = name, declared
        return found

    @extern("void *memset(void *address, int byte, size_t size)")
    def memset(self, address: int, byte: int, size: int) -> int:
        """Fill memory."""
        self.code.store(address, bytes([byte & 0xFF]) * size)
        return address

    @extern("void *memcpy(void *to, const void *from, size_t size)")
    def memcpy(self, to: int, source: int, size: int) -> int:
        """Copy memory."""
        self.code.store(to, self.code.load(source, size))
        return to

    @extern("void *memmove(void *to, const void *from, size_t size)")
    def memmove(self, to: int, source: int, size: int) -> int:
        """Copy memory that may overlap."""
        return self.memcpy(to, source, size)

    @extern("int memcmp(const void *one, const void *other, size_t size)")
    def memcmp(self, one: int, other: int, size: int) -> int:
        """Compare memory."""
        first, second = self.code.load(one, size), self.code.load(other, size)
        return (first > second) - (first < second)

    @extern("size_t strlen(const char *text)")
    def strlen(self, text: str) -> int:
        """Return the length of a string."""
        return len(text.encode())

    @extern("int strcmp(const char *one, const char *other)")
    def strcmp(self, one: str, other: str) -> int:
        """Compare strings."""
        return (one > other) - (one < other)

    @extern("int strncmp(const char *one, const char *other, size_t size)")
    def strncmp(self, one: str, other: str, size: int) -> int:
        """Compare the beginnings of strings."""
        return self.strcmp(one[:size], other[:size])

    @extern("uint64_t __udivdi3(uint64_t dividend, uint64_t divisor)")
    def divide(self, dividend: int, divisor: int) -> int:
        """Divide 64-bit numbers on a machine of 32 bits; a division by 0 gives 0."""
        return dividend // divisor if divisor else 0

    @extern("void panic(const char *format, ...)")
    def panic(self, text: str) -> None:
        """End the call.  Raises `GluePanicError`."""
        raise GluePanicError(f"panic: {text}")

    @extern("int printf(const char *format, ...)")
    def printf(self, _text: str) -> int:
        """Print nothing."""
        return 0

    @extern("void abort(void)")
    def abort(self) -> None:
        """End the call.  Raises `GluePanicError`."""
        raise GluePanicError("abort")

    @extern("void __stack_chk_fail(void)")
    def stack_chk_fail(self) -> None:
        """End the call.  Raises `GluePanicError`."""
        raise GluePanicError("the stack protector found that a local array was overrun")
