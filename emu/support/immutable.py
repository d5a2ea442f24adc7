"""Immutable values: dataclasses that are cheap to define.

`dataclass(frozen=True, slots=True)` compiles six methods for each class, and hundreds of classes
are defined before a trace begins. An `immutable` class has one compiled method, `__init__`. Its
other methods are those below, which all such classes share. It is a dataclass to everyone else:
`fields`, `replace`, `match` and pickle work.

That nobody assigns to an attribute is checked by the type checker, not at run time, so an object is
also made faster. Results that the Python API gives away are frozen dataclasses instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, cast, dataclass_transform

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(made: _Class) -> _Class:
    """Make a class a dataclass with slots that is compared, hashed and printed by its fields.

    Methods of these names that the class defines itself are kept.
    """
    own = frozenset(made.__dict__)
    done: Any = dataclass(eq=False, repr=False, slots=True)(made)  # the stubs lose the class here
    content = _content([one.name for one in fields(done) if one.compare])
    methods = {"__eq__": _equality(content), "__hash__": _hashing(content), "__repr__": _told}
    for name, method in methods.items():
        if name not in own:
            setattr(done, name, method)
    return cast("_Class", done)


def _content(names: list[str]) -> Callable[[Any], object]:
    """Return a function that returns the attributes of an object as one object."""
    return attrgetter(*names) if names else lambda _value: ()


def _equality(content: Callable[[Any], object]) -> Callable[[object, object], bool]:
    def __eq__(self: object, other: object) -> bool:  # noqa: N807  it becomes a method
        if other.__class__ is not self.__class__:
            return NotImplemented
        return content(self) == content(other)

    return __eq__


def _hashing(content: Callable[[Any], object]) -> Callable[[object], int]:
    def __hash__(self: object) -> int:  # noqa: N807  it becomes a method
        return hash(content(self))

    return __hash__


def _told(self: Any) -> str:
    shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({shown})"
