"""The functions that the machine code of all consumers calls, compiled once."""

from __future__ import annotations

from functools import cache

from emu.native.builder import Module
from emu.native.link import Linked
from trapline.framework.native import aggregate
from trapline.framework.native.dif import dynvars
from trapline.framework.native.dif.tuples import key_function
from trapline.framework.native.memory import own_function


@cache
def _keys() -> Linked:
    module = Module()
    own_function(module)
    key_function(module)
    return Linked(module.compiled("keys"))


@cache
def symbols() -> dict[str, int]:
    """Return the addresses of the functions, by their names."""
    libraries = (
        (aggregate.library(), ("locate",)),
        (dynvars.library(), ("find", "store", "remove")),
        (_keys(), ("own", "key")),
    )
    return {name: linked.address(name) for linked, names in libraries for name in names}
