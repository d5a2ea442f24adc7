"""Named words in memory, which machine code and Python share."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

if sys.version_info >= (3, 14):
    import annotationlib

if TYPE_CHECKING:
    from _ctypes import _PyCStructType
else:
    _PyCStructType = type(ctypes.Structure)

WORD_SIZE: Final = 8


class _Words(_PyCStructType):
    """Makes a field of each annotation, before ctypes looks for fields."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        names = [field for field in _annotated(namespace) if not field.startswith("_")]
        namespace["_fields_"] = [(field, ctypes.c_uint64) for field in names]
        return super().__new__(cls, name, bases, namespace)


def _annotated(namespace: Mapping[str, Any]) -> Iterable[str]:
    """Return the annotated names of a class that is being made."""
    if sys.version_info >= (3, 14):
        # Only with `from __future__ import annotations` they are in the namespace.
        make = annotationlib.get_annotate_from_class_namespace(namespace)
        if make is not None:
            return annotationlib.call_annotate_function(make, annotationlib.Format.FORWARDREF)
    annotations: Mapping[str, Any] = namespace.get("__annotations__", {})
    return annotations


class Block(ctypes.Structure, metaclass=_Words):
    """A block of unsigned 64-bit words, one for each annotated name, in their order.

    The words are read and written as attributes; a written number is truncated to 64 bits. They
    stay at `address` as long as the object exists.

        class Counters(Block):
            hits: int
            misses: int

        counters = Counters(hits=1)
        offset = Counters.offset("misses")  # 8: for `Function.load(address, offset)`
    """

    @property
    def address(self) -> int:
        """The address of the first word in this process."""
        return ctypes.addressof(self)

    @classmethod
    def offset(cls, name: str) -> int:
        """Return a word's offset in the block, in bytes.  Raises AttributeError for another name."""
        found: int = getattr(cls, name).offset
        return found
