"""The check of illumos' dtrace_subr.c for signals that arrive while fasttrap executes a copy.

The scratch space of a thread has the copy of an instruction and a jump behind the original, and a
second copy with a trap into the kernel.  A signal must see the thread before its instruction, or
behind it: if the thread cannot be put there at once, the signal waits for the trap of the second
copy.  Source: illumos usr/src/uts/i86pc/os/dtrace_subr.c, usr/src/uts/intel/dtrace/fasttrap_isa.c.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from emu.guest.function import FunctionFaultError
from trapline.lab.objects.findings import Failure, ObjectReport
from trapline.lab.objects.glue import GluePanicError
from trapline.lab.objects.user_code import UserCode

_NOW: Final = "dtrace_safe_synchronous_signal"
_LATER: Final = "dtrace_safe_defer_signal"
_INT: Final = 1 << 32
# The instruction, its size, its copy and the second copy.
_PC: Final = 0x10_0000
_SIZE: Final = 3
_FIRST: Final = 0x20_0000
_SECOND: Final = _FIRST + 20
_ENDS: Final = _SECOND + _SIZE
# REG_RAX of <sys/regset.h>: the register that a copy uses instead of the pc, and its own value.
_SCRATCH_REGISTER: Final = 14
_ITS_VALUE: Final = 0x1234
_OTHER_VALUE: Final = 0x5678


class ScratchSignals:
    """The check of the two functions, at each address of the scratch space."""

    def __init__(self, code: UserCode, report: ObjectReport) -> None:
        self._code, self._report = code, report

    def run(self) -> None:
        """Compare what the functions do with what a signal needs; each mistake is a failure."""
        for function in (_NOW, _LATER):
            if self._code.defines(function):
                self._try(function)

    def _try(self, function: str) -> None:
        code = self._code
        try:
            found = next(self._differences(function), None)
            where = code.where(code.address(function))
        except (FunctionFaultError, GluePanicError) as error:
            found = str(error)
            where = code.where(error.pc if isinstance(error, FunctionFaultError) else code.guest.engine.pc)
        if found:
            self._report.failures.append(Failure(function, found, where))

    def _differences(self, function: str) -> Iterator[str]:
        """Yield what is wrong at each address, outside of the copies, too."""
        code = self._code
        thread, process = code.view("kthread", code.address("trapline_thread")), code.view("_klwp")
        registers = code.view("regs")
        pc = "r_rip" if registers.has("r_rip") else "r_eip"
        thread["t_lwp"], process["lwp_regs"] = process.address, registers.address
        for address in range(_FIRST - 1, _ENDS + 2):
            stepping = address >= _SECOND
            values = {
                "t_dtrace_pc": _PC, "t_dtrace_npc": _PC + _SIZE, "t_dtrace_scrpc": _FIRST, "t_dtrace_astpc": _SECOND,
                "t_dtrace_regv": _ITS_VALUE, "t_dtrace_ft": 0, "t_dtrace_on": 1, "t_dtrace_step": stepping,
                "t_dtrace_reg": _SCRATCH_REGISTER,
            }  # fmt: skip
            for name, value in values.items():
                thread[name] = value
            registers[pc] = address
            if registers.has("r_rax"):
                registers["r_rax"] = _OTHER_VALUE
            result = code.call(function) % _INT
            found = {
                "the pc": registers[pc],
                "t_dtrace_on": thread["t_dtrace_on"],
                "t_dtrace_step": thread["t_dtrace_step"],
                "t_dtrace_ast": thread["t_dtrace_ast"],
            }
            wanted = (
                _deferred(address, stepping=stepping) if function == _LATER else _at_once(address, stepping=stepping)
            )
            if function == _LATER:
                found["the result"] = result
                if registers.has("r_rax"):
                    found["rax"] = registers["r_rax"]
                    wanted["rax"] = _ITS_VALUE if address == _FIRST + _SIZE else _OTHER_VALUE
            wrong = [
                f"{name} is {value:#x}, not {wanted[name]:#x}" for name, value in found.items() if value != wanted[name]
            ]
            if wrong:
                yield f"with the pc at the copies{address - _FIRST:+d}: {'; '.join(wrong)}"


def _state(pc: int, *, on: bool, stepping: bool, waits: bool = False) -> dict[str, int]:
    return {"the pc": pc, "t_dtrace_on": on, "t_dtrace_step": stepping, "t_dtrace_ast": waits}


def _at_once(address: int, *, stepping: bool) -> dict[str, int]:
    """Return the state after a fault of the copied instruction: the original has faulted."""
    if address in {_FIRST, _SECOND}:
        return _state(_PC, on=False, stepping=False)
    inside = _FIRST <= address <= _ENDS
    return _state(address, on=inside, stepping=stepping and inside)


def _deferred(address: int, *, stepping: bool) -> dict[str, int]:
    """Return the state after another signal, and whether it waits."""
    if not _FIRST <= address <= _ENDS:
        return {**_state(address, on=False, stepping=False), "the result": 0}
    if _FIRST + _SIZE <= address < _SECOND:  # the instruction was executed
        return {**_state(_PC + _SIZE, on=False, stepping=False), "the result": 0}
    moved = address if stepping else address + _SECOND - _FIRST
    return {**_state(moved, on=True, stepping=True, waits=True), "the result": 1}
