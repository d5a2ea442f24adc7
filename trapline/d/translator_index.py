"""The known translators, found by their output and by their input.

A program may define thousands: none of them is compared with all others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

from trapline.d.type_rules import same
from trapline.d.typed import Translator
from trapline.d.types import Array, Composite, Enumeration, Function, Pointer, Type, resolve


class TranslatorIndex:
    """The translators of one consumer's programs, in the order in which they were defined."""

    def __init__(self) -> None:
        self._by_output: dict[int, list[Translator]] = defaultdict(list)
        self._by_input: dict[Hashable, list[Translator]] = defaultdict(list)
        self._by_both: dict[tuple[int, Hashable], list[Translator]] = defaultdict(list)

    def add(self, translator: Translator) -> None:
        """Keep a translator."""
        output, shape = id(translator.output), _shape(translator.input.type)
        self._by_output[output].append(translator)
        self._by_input[shape].append(translator)
        self._by_both[output, shape].append(translator)

    def to(self, output: Composite) -> Sequence[Translator]:
        """Return the translators that make a struct or union."""
        return self._by_output.get(id(output), ())

    def of(self, input_: Type) -> Sequence[Translator]:
        """Return the translators that take a type."""
        return [known for known in self._by_input.get(_shape(input_), ()) if same(known.input.type, input_)]

    def between(self, input_: Type, output: Composite) -> Translator | None:
        """Return the translator from one type to the other, None if there is none."""
        alike = self._by_both.get((id(output), _shape(input_)), ())
        return next((known for known in alike if same(known.input.type, input_)), None)


def _shape(type_: Type) -> Hashable:
    """Return a key that is equal for equal types (`type_rules.same`)."""
    match resolve(type_):
        case Pointer(target=target):
            return "*", _shape(target)
        case Array(element=element, count=count):
            return count, _shape(element)
        case Function(returns=returns):
            return "()", _shape(returns)
        case Composite() | Enumeration() as tagged:
            return tagged.tag or id(tagged)
        case plain:
            return plain
