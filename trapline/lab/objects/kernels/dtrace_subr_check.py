"""The check of the rest of dtrace_subr.c: the list of handlers, and the faults of a running probe.

A fault in a probe must not reach the kernel: dtrace_trap() notes it and goes on behind the
instruction, if DTrace expects faults (CPU_DTRACE_NOFAULT), and otherwise leaves it to the kernel.
Source: FreeBSD sys/cddl/dev/dtrace/<machine>/dtrace_subr.c.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Final

from emu.displaced.cpu_core import CpuFlag
from emu.elf.image import Image
from emu.guest.function import FunctionFaultError
from emu.support.did_you_mean import counted
from emu.support.words import BadAddressError
from providers import fasttrap
from providers.fbt import PORTS
from providers.fbt.port import ProbeTrap
from trapline.lab.objects.findings import Failure, ObjectReport
from trapline.lab.objects.glue import GluePanicError
from trapline.lab.objects.kernels.fbt import FbtKernel, frame_key
from trapline.lab.objects.kernels.fbt_system import ObjectSite
from trapline.lab.objects.user_code import UserCode

_TRAP: Final = "dtrace_trap"
_INVOP: Final = "dtrace_invop"
_ADD: Final = "dtrace_invop_add"
_REMOVE: Final = "dtrace_invop_remove"
_FBT: Final = "fbt_invop"
_INT: Final = 1 << 32
_LONGEST: Final = 16
# The address that faults say they are about.
_FAULTING: Final = 0x1234_5678
_EXPECTED: Final = {True: "while DTrace expects faults", False: "while it expects none"}
# The functions of an image whose instructions are tried.
_FUNCTIONS: Final = 30
# The members of a trap frame that may have the address of a fault; i386's is in a register.
_ADDRESSES: Final = ("tf_addr", "tf_far", "tf_stval")


class SubrCheck:
    """The check of dtrace_subr.c, as far as the objects have it."""

    def __init__(self, code: UserCode, image: Image, report: ObjectReport) -> None:
        assert isinstance(code.glue, FbtKernel)
        self._code, self._glue, self._image, self._report = code, code.glue, image, report

    def run(self, sites: Mapping[int, ObjectSite]) -> None:
        """Compare what the functions do with what DTrace needs; each mistake is a failure."""
        if all(self._code.defines(name) for name in (_INVOP, _ADD, _REMOVE, _FBT)) and sites:
            self._note(_REMOVE, self._removal(next(iter(sites))))
        if self._code.defines(_TRAP):
            self._note(_TRAP, self._faults())

    def _note(self, function: str, found: Iterable[str]) -> None:
        code = self._code
        try:
            for what in found:
                self._report.failures.append(Failure(function, what, code.where(code.address(function))))
        except (FunctionFaultError, GluePanicError) as error:
            pc = error.pc if isinstance(error, FunctionFaultError) else code.guest.engine.pc
            self._report.failures.append(Failure(function, str(error), code.where(pc)))

    def _removal(self, address: int) -> Iterator[str]:
        """Yield what is wrong about the removal of the only handler, and its return."""
        code, handler = self._code, self._code.address(_FBT)
        names = code.isa.registers
        frame = self._glue.frame({
            names.pc: address + code.isa.traps.pc_after, names.sp: code.allocate(32 * code.isa.word)
        })  # fmt: skip
        for change, answers in ((_REMOVE, False), (_ADD, True)):
            code.call(change, handler)
            answer = code.call(_INVOP, address, frame.address, 0) % _INT
            if bool(answer) is not answers:
                yield f"after {change}(fbt_invop) {_INVOP} returns {answer:#x} at a site"

    def _faults(self) -> Iterator[str]:
        """Yield the first thing that is wrong about each kind of fault."""
        instructions = self._instructions()
        for trap, expected in product(PORTS[self._code.isa.name].probe_traps, (True, False)):
            for address, length in instructions.items():
                what = self._fault(address, length, trap, expected=expected)
                if what:
                    size = counted(length, "byte")
                    yield f"{trap.name} at an instruction of {size}, {_EXPECTED[expected]}: {what}"
                    break

    def _fault(self, address: int, length: int, trap: ProbeTrap, *, expected: bool) -> str:
        """Return what is wrong about one fault, "" if nothing is."""
        code, glue = self._code, self._glue
        core = code.view("cpu_core_t", code.address("cpu_core"))
        before = CpuFlag.NOFAULT if expected else CpuFlag(0)
        core["cpuc_dtrace_flags"], core["cpuc_dtrace_illval"] = before, 0
        frame = glue.frame({code.isa.registers.pc: address})
        glue.faulting = _FAULTING
        for member in _ADDRESSES:
            if frame.has(member):
                frame[member] = _FAULTING
        with code.showing(address, _LONGEST):
            handled = code.call(_TRAP, frame.address, trap.number) % _INT
        noted = trap.flag if expected else CpuFlag(0)
        wanted = {
            "it returns": int(bool(noted)),
            "the saved pc is": address + (length if noted else 0),
            "the flags are": before | noted,
            "the bad address is": _FAULTING if noted is CpuFlag.BADADDR else 0,
        }
        found = (handled, frame[frame_key(frame, code.isa.registers.pc)] & code.isa.address_mask,
                 core["cpuc_dtrace_flags"], core["cpuc_dtrace_illval"])  # fmt: skip
        core["cpuc_dtrace_flags"] = 0
        return "; ".join(
            f"{name} {value:#x}, not {right:#x}"
            for (name, right), value in zip(wanted.items(), found, strict=True)
            if value != right
        )

    def _instructions(self) -> Mapping[int, int]:
        """Return the address of one instruction of each length, with the length."""
        image, found = self._image, dict[int, int]()
        port = fasttrap.PORTS[image.isa.name]
        for symbol in image.functions[:_FUNCTIONS]:
            try:
                body = image.code(symbol) if symbol.size else b""
            except BadAddressError:
                continue
            for offset in port.boundaries(body):
                length = image.isa.instruction_length(body[offset : offset + _LONGEST])
                if length:
                    found.setdefault(length, symbol.value + offset)
        return {address: length for length, address in sorted(found.items())}
