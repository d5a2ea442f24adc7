"""The syscall provider: syscall:freebsd:read:entry and the like.

Nothing is patched: the path of system calls tests whether a probe must fire.

    enable      the call's row gets the probe's id, and the test is enabled
    (a call)    the path finds an id in the row, and fires the probe
    disable     the row loses the id; with the last one the test is disabled

Source: FreeBSD sys/cddl/dev/systrace/systrace.c.
"""

# ruff: noqa: ARG002  (the contract passes more than is needed)

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from emu.guest.system_calls import Moment, SystemCallTable
from emu.native.guest import LateArguments
from providers.base import ArgumentDescription, Framework, Provider

_AFRAMES = 1
# Arguments of a return probe: the result, twice.
_PASSED = 2


class _Call(NamedTuple):
    """The call of a probe; FreeBSD packs it into one word, 0x10000 | number for an entry."""

    table: SystemCallTable
    number: int
    moment: Moment


class Syscall(Provider):
    """The probes of every table.

    With `forgetful`, as on FreeBSD, disabling one probe of a call silences both.
    """

    name = "syscall"

    def __init__(self, framework: Framework, tables: Sequence[SystemCallTable], *, forgetful: bool = False) -> None:
        self._forgetful = forgetful
        self._enabled = dict.fromkeys((table.module for table in tables), 0)
        framework.register(self)
        for table in tables:
            self._create(framework, table)

    def _create(self, framework: Framework, table: SystemCallTable) -> None:
        """Create two probes per name.

        If several numbers have one name, the first number gets them (systrace_provide).
        """
        seen = set()
        for number, name in sorted(table.names.items()):
            if name not in seen:
                seen.add(name)
                for moment in Moment:
                    call = _Call(table, number, moment)
                    framework.probe_create(self, table.module, name, moment.value, _AFRAMES, call)

    def enable(self, probe_id: int, arg: _Call) -> None:
        """Arm one moment of a call (systrace_enable)."""
        arg.table.arm(arg.number, arg.moment, probe_id)
        self._count(arg.table, 1)

    def disable(self, probe_id: int, arg: _Call) -> None:
        """Disarm it (systrace_disable)."""
        for moment in Moment if self._forgetful else (arg.moment,):
            arg.table.arm(arg.number, moment, 0)
        self._count(arg.table, -1)

    def _count(self, table: SystemCallTable, change: int) -> None:
        self._enabled[table.module] += change
        table.enable(on=self._enabled[table.module] > 0)

    def argument_description(self, probe_id: int, arg: _Call, index: int) -> ArgumentDescription | None:
        """Return an argument's type.

        A pointer is to the process's memory, and its type says so.
        """
        signature = arg.table.signature(arg.number)
        if signature is None:
            return None
        types = signature.parameters if arg.moment is Moment.ENTRY else (signature.result,) * _PASSED
        if index >= len(types):
            return None
        native = types[index]
        return ArgumentDescription(index, f"userland {native}" if native.endswith("*") else native)

    def argument_value(self, probe_id: int, arg: _Call, index: int) -> int:
        """Return an argument that is not passed: at entry the stored one, at return 0."""
        return arg.table.argument(index)

    def late_arguments(self, probe_id: int, arg: _Call) -> LateArguments:
        """Return where those are."""
        return arg.table.late

    def destroy(self, probe_id: int, arg: _Call) -> None:
        """Do nothing: no data are kept for a probe."""
