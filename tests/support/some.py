"""Loops of tests that fail where there is nothing to try."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def some(items: Iterable[T]) -> Iterator[T]:
    """Yield the items.  Raises `AssertionError` at the end if there were none."""
    count = 0
    for count, item in enumerate(items, 1):  # noqa: B007  used after the loop
        yield item
    assert count, "there is nothing to try"
