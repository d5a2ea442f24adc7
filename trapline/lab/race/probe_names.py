"""Patches by the names of probes: provider:module:function:name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from emu.displaced.decision import Code, Refused
from emu.elf.image import Image
from emu.elf.symbols import Binding, Symbol, SymbolType
from emu.guest.kernel.boot.images import built
from emu.isa.base import Isa
from emu.isa.disassembly import instructions
from emu.support.did_you_mean import did_you_mean
from emu.support.words import BadAddressError
from providers import fasttrap, fbt, kinst, uprobes
from providers.fbt.exclusions import EXCLUSIONS, excluded
from providers.fbt.port import Function
from providers.fidelity import Fidelity
from providers.kinst.kinst import look
from trapline.lab.race.patch import PLACE, Kind, NoPortError, Patch, RaceError

_PAGE: Final = 4096
# Bytes after a function that are placed with it: a fetch may read ahead.
_MORE: Final = 16
# Distance of the target of SDT's jump from its site.
_TARGET: Final = 0x100
# The provider of a patch whose bytes are given.
_CODE: Final = "code"

# A patch of a function: its offset, the bytes written, and the kind.
FunctionPatch = tuple[str, int, bytes, Kind]


def _fbt(isa: Isa, function: Function) -> Iterator[FunctionPatch]:
    port = fbt.PORTS[isa.name]
    if excluded(function.name, (*EXCLUSIONS, *port.exclusions)) is not None:
        return
    for site in port.scan(function).sites:
        yield site.probe, site.address - function.address, site.patch, Kind.TRAP


def _kinst(isa: Isa, function: Function) -> Iterator[FunctionPatch]:
    port = kinst.PORTS.get(isa.name)
    if port is None:
        raise NoPortError(f"kinst has no port to {isa.name}")
    symbol = Symbol(function.name, function.address, function.size, SymbolType.FUNC, Binding.GLOBAL, 1)
    for offset, decision, _ in look(port, isa, symbol, lambda _at, size: function.code[:size]):
        if not isinstance(decision, Refused):
            yield str(offset), offset, port.patch(decision.length), Kind.TRAP


def _pid(isa: Isa, function: Function) -> Iterator[FunctionPatch]:
    port = fasttrap.PORTS[isa.name]
    for offset, size in _instructions(isa, function):
        code = Code(function.code[offset : offset + port.longest], PLACE + offset)
        if not isinstance(port.treat(code, Fidelity.EXACT), Refused):
            yield str(offset), offset, port.breakpoint(size), Kind.TRAP


def _uprobe(isa: Isa, function: Function) -> Iterator[FunctionPatch]:
    port = uprobes.PORTS[isa.name]
    for offset, _ in _instructions(isa, function):
        code = Code(function.code[offset : offset + port.longest], PLACE + offset)
        aligned = (function.address + offset) % port.alignment == 0
        if aligned and not isinstance(port.treat(code, Fidelity.EXACT), Refused):
            yield str(offset), offset, port.breakpoint, Kind.TRAP


def _sdt(isa: Isa, function: Function) -> Iterator[FunctionPatch]:
    nop, found = isa.jump.nop, -1
    offsets = [offset for offset, _ in _instructions(isa, function)]
    for offset in offsets:
        if offset > found and function.code[offset:].startswith(nop):
            found = offset + len(nop) - 1
            site = PLACE + offset
            yield str(offset), offset, isa.jump.patch(site, site + _TARGET), Kind.JUMP


_PATCHES: Final[dict[str, Callable[[Isa, Function], Iterator[FunctionPatch]]]] = {
    "fbt": _fbt, "kinst": _kinst, "pid": _pid, "sdt": _sdt, "uprobe": _uprobe,
}  # fmt: skip


def _instructions(isa: Isa, function: Function) -> Iterator[tuple[int, int]]:
    return instructions(isa.instruction_length, function.code, function.size)


def functions(isa: Isa, path: str | Path | None) -> Iterator[Function]:
    """Yield the functions of an ELF file; those of the kernel guest, without one.

    Raises `emu.elf.file.ElfError`, and `NoPortError` for a file of another ISA.
    """
    image = Image(path or built(isa) / "kernel")
    if image.isa is not isa:
        raise NoPortError(f"{path} is for {image.isa.name}, not for {isa.name}")
    for symbol in image.functions:
        with suppress(BadAddressError):  # a symbol of something that is not in the file
            code = image.read(symbol.value, symbol.size + _MORE)
            if symbol.size and len(code) >= symbol.size:
                yield Function(symbol.name, symbol.value, symbol.size, code)


def patches(isa: Isa, provider: str, function: Function, module: str = "") -> Iterator[Patch]:
    """Yield the patches that a provider can write in a function."""
    for name, offset, new, kind in _PATCHES[provider](isa, function):
        text = f"{provider}:{module}:{function.name}:{name}"
        address = PLACE + function.address % _PAGE
        yield Patch(isa, provider, text, function.name, function.code, address, offset, new, kind, function.size)


def _given(isa: Isa, text: str, code: str, offset: str, new: str) -> Patch:
    """Return the patch of code:BYTES:OFFSET:BYTES.  Raises `RaceError`."""
    try:
        function, at, written = bytes.fromhex(code), int(offset, 0), bytes.fromhex(new)
    except ValueError:
        raise RaceError(f"'{text}': write code:BYTES:OFFSET:BYTES, bytes in hexadecimal") from None
    patch = Patch(isa, _CODE, text, _CODE, function, PLACE, at, written, Kind.JUMP)
    if not written or patch.site not in patch.boundaries or patch.end > patch.address + len(function):
        raise RaceError(f"'{text}': {offset} is not an instruction with room for {len(written)} bytes")
    return patch


def find(isa: Isa, text: str) -> Patch:
    """Return the patch of a name.  Raises `RaceError` and `emu.elf.file.ElfError`."""
    parts = text.split(":")
    if len(parts) != 4:
        raise RaceError(f"'{text}': write provider:module:function:name, such as fbt::malloc:entry")
    provider, module, function, name = parts
    if provider == _CODE:
        return _given(isa, text, *parts[1:])
    if provider not in _PATCHES:
        raise RaceError(f"'{provider}': there are {', '.join(_PATCHES)}")
    known = {one.name: one for one in functions(isa, module or None)}
    if function not in known:
        raise RaceError(f"no function '{function}'{did_you_mean(function, known)}")
    found = list(patches(isa, provider, known[function], module))
    if not found:
        raise RaceError(f"{provider} has no site in {function} on {isa.name}")
    wanted = "0" if name == "entry" and provider != "fbt" else name
    for patch in found:
        if patch.name.rpartition(":")[2] == wanted or (provider == "sdt" and name in {"", "entry"}):
            if patch.site not in patch.boundaries:
                raise RaceError(f"{text}: the function's bytes before it are not all instructions")
            return patch
    names = [patch.name.rpartition(":")[2] for patch in found]
    raise RaceError(f"{provider} has no site '{name}' in {function}: there are {', '.join(names[:12])}")
