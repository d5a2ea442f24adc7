"""The sites of a module's functions, kept on disk (`emu.support.disk_cache`) between processes.

A scan decodes each function of the kernel.  It depends on the functions, their code, and the source
files of all that decides: of FBT and the ISAs, and of capstone, which decodes x86.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from emu.elf.symbols import Symbol
from emu.support.disk_cache import cached, signature
from providers.fbt.port import Site
from providers.fidelity import Fidelity

# A function's position in the walk, and its sites.
Found = tuple[int, Sequence[Site]]


def kept_sites(
    isa: str,
    functions: Sequence[Symbol],
    text: bytes,
    fidelity: Fidelity,
    find: Callable[[], Sequence[Found]],
) -> Sequence[Found]:
    """Return `find()`, or its earlier result for the same functions, code (`text`) and sources.

    `isa` is the name of the port that `find` uses.
    """
    sources = signature("emu", "providers", "capstone")
    if sources is None:
        return find()
    symbols = [(symbol.name, symbol.value, symbol.size) for symbol in functions]
    made_from = b"\n".join((repr((isa, fidelity.name, symbols)).encode(), sources, text))
    return _decoded(cached("fbt-sites", made_from, lambda: _encoded(find())))


def _encoded(found: Sequence[Found]) -> bytes:
    rows = [
        (number, [(probe, address, patch.hex(), *rest) for probe, address, patch, *rest in sites])
        for number, sites in found
    ]
    return json.dumps(rows).encode()


def _decoded(data: bytes) -> Sequence[Found]:
    return [
        (number, tuple(Site(probe, address, bytes.fromhex(patch), *rest) for probe, address, patch, *rest in sites))
        for number, sites in json.loads(data)
    ]
