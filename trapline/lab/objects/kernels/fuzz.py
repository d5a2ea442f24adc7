"""Generated function bodies for a scanner: real instructions, random bytes and mutations.

hypothesis makes them and makes each finding as short as it can; the seed is fixed, so the same
objects give the same findings.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice, pairwise
from random import Random
from typing import Final

from emu.elf.image import Image
from emu.elf.symbols import Binding, Symbol, SymbolType
from emu.guest.function import FunctionFaultError
from emu.isa import disassembly
from emu.support.did_you_mean import counted
from providers import fasttrap
from providers.fbt.port import Function, Port
from trapline.lab.objects.findings import Failure, ObjectReport
from trapline.lab.objects.glue import GluePanicError
from trapline.lab.objects.kernels.fbt_system import FbtSystem
from trapline.lab.objects.request import Request, RequestError
from trapline.lab.objects.user_code import UserCode

# The page of the bodies, and the offset of a body in it: there is memory before it and behind it.
_PAGE: Final = 0x5800_0000
_SIZE: Final = 0x1000
_ADDRESS: Final = _PAGE + _SIZE // 2
_LONGEST_BODY: Final = 256
# The number of instructions that the scan of so short a body may take.
_LIMIT: Final = 50_000
# The number of real instructions that bodies are made of.
_PIECES: Final = 300
_SEED: Final = 20
# The instructions of a body that a finding shows.
_LISTED: Final = 6


class ScanFuzzer:
    """A fuzzer that gives generated functions to the user's scanner and to the package's."""

    def __init__(self, code: UserCode, port: Port, request: Request, report: ObjectReport) -> None:
        glue = code.glue
        assert isinstance(glue, FbtSystem)
        assert request.image is not None
        self._code, self._glue, self._port, self._request, self._report = code, glue, port, request, report
        self._pieces = _pieces(request.image)
        self._outcomes: dict[bytes, dict[str, tuple[str, str]]] = {}
        code.place(_PAGE, bytes(_SIZE))

    def run(self) -> None:
        """Try `request.fuzz` bodies for each kind of finding, and report the shortest of each.

        Raises `RequestError`: hypothesis is not installed.
        """
        self._code.limit, limit = _LIMIT, self._code.limit
        try:
            for kind in ("failure", "access", "sites"):
                body = self._find(lambda made, kind=kind: kind in self._outcome(made))  # type: ignore[misc]
                if body is not None:
                    what, where = self._outcome(body)[kind]
                    self._report_made(body, f"{what}; again by --bytes {body.hex()}", where)
        finally:
            self._code.limit = limit
        self._report.counts["made functions"] = len(self._outcomes)

    def run_one(self, body: bytes) -> None:
        """Try one body, and report all its findings."""
        self._code.limit, limit = _LIMIT, self._code.limit
        try:
            for what, where in self._outcome(self._whole(body)).values():
                self._report_made(body, what, where)
        finally:
            self._code.limit = limit
        self._report.counts["made functions"] = 1

    def _report_made(self, body: bytes, what: str, where: str) -> None:
        found = disassembly.disassemble(self._code.isa, body, _ADDRESS, self._request.syntax)
        listing = "; ".join(one.text for one in islice(found, _LISTED)) or disassembly.NO_INSTRUCTION
        self._report.failures.append(Failure(f"a made function ({listing})", what, where, body))

    def _find(self, condition: Callable[[bytes], bool]) -> bytes | None:
        """Return the shortest body for which a condition holds, None if none was found."""
        try:
            import hypothesis  # noqa: PLC0415  only the user of --fuzz needs it
            from hypothesis import strategies as st  # noqa: PLC0415
        except ImportError:
            raise RequestError("--fuzz needs the package 'hypothesis': pip install hypothesis") from None
        pieces = st.one_of(st.sampled_from(self._pieces), st.binary(min_size=1, max_size=4))
        made = st.lists(pieces, min_size=1, max_size=_LONGEST_BODY // 8).map(b"".join)
        mutated = st.tuples(made, st.integers(0, _LONGEST_BODY), st.integers(0, 255)).map(_mutated)
        settings = hypothesis.settings(
            max_examples=self._request.fuzz,
            deadline=None,
            database=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )  # fmt: skip
        bodies = st.one_of(made, mutated).map(self._whole)
        try:
            return hypothesis.find(bodies, condition, settings=settings, random=Random(_SEED))  # noqa: S311  bodies, not secrets
        except hypothesis.errors.NoSuchExample:
            return None

    def _whole(self, body: bytes) -> bytes:
        """Return a body whose size is possible for a function."""
        step = self._code.isa.instruction_alignment
        return body[:_LONGEST_BODY].ljust(-(-len(body[:_LONGEST_BODY]) // step) * step, b"\0")

    def _outcome(self, body: bytes) -> dict[str, tuple[str, str]]:
        """Return the findings about a body: kind -> (what, where)."""
        if body not in self._outcomes:
            self._outcomes[body] = self._scan(body)
        return self._outcomes[body]

    def _scan(self, body: bytes) -> dict[str, tuple[str, str]]:
        code, found = self._code, dict[str, tuple[str, str]]()
        code.guest.engine.memory.write(_ADDRESS, body.ljust(_SIZE // 2, b"\0"))
        shadow = code.shadow
        before = {key: one.count for key, one in shadow.mistakes.items()} if shadow is not None else {}
        if shadow is not None:
            shadow.subject = "a made function"
        made = Symbol("made", _ADDRESS, len(body), SymbolType.FUNC, Binding.GLOBAL, 1)
        try:
            sites, _ = self._glue.scan(made)
        except FunctionFaultError as error:
            return {"failure": (str(error), code.where(error.pc))}
        except GluePanicError as error:
            return {"failure": (str(error), code.where(code.guest.engine.pc))}
        for key, mistake in shadow.mistakes.items() if shadow is not None else ():
            if mistake.count > before.get(key, 0):
                found["access"] = f"{mistake.what}, {counted(mistake.size, 'byte')}", code.where(mistake.pc)
        function = Function("made", _ADDRESS, len(body), body.ljust(len(body) + self._port.lookahead, b"\0"),
                            self._request.fidelity)  # fmt: skip
        ours = {(site.probe, site.address - _ADDRESS) for site in self._port.scan(function).sites}
        theirs = {(site.probe, site.address - _ADDRESS) for site in sites}
        if ours != theirs:
            found["sites"] = f"sites are {_listed(theirs)} by theirs, {_listed(ours)} by ours", ""
        return found


def _pieces(image: Image) -> list[bytes]:
    """Return distinct instructions of the beginnings and ends of an image's functions.

    Short ones come first, because hypothesis prefers them.
    """
    port = fasttrap.PORTS[image.isa.name]
    found: dict[bytes, None] = {}
    for symbol in image.functions[: 2 * _PIECES]:
        body = image.code(symbol) if symbol.size else b""
        offsets = [*port.boundaries(body), len(body)]
        each = [body[start:end] for start, end in pairwise(offsets)]
        found.update(dict.fromkeys((*each[:2], *each[-2:])))
        if len(found) >= _PIECES:
            break
    return sorted((one for one in found if one), key=lambda one: (len(one), one))


def _mutated(parts: tuple[bytes, int, int]) -> bytes:
    """Return a body with one byte changed."""
    body, place, value = parts
    place %= len(body)
    return body[:place] + bytes([value]) + body[place + 1 :]


def _listed(sites: set[tuple[str, int]]) -> str:
    return ", ".join(f"{probe}+{offset:#x}" for probe, offset in sorted(sites, key=lambda one: one[1])) or "none"
