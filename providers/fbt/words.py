"""FBT's invop handler for ISAs with instructions of one word.

The fbt_invop() of AArch64 and that of RISC-V are equal.

Source: FreeBSD sys/cddl/dev/fbt/aarch64/fbt_isa.c, sys/cddl/dev/fbt/riscv/fbt_isa.c.
"""

from __future__ import annotations

from collections.abc import Callable

from emu.displaced.cpu_core import CpuCore
from emu.displaced.frame import Frame
from emu.probe.trap import Handler
from providers.fbt.port import Fire
from providers.fbt.records import TABLE_MASK, RecordTable


def handler(
    table: RecordTable, core: CpuCore, fire: Fire, *, caller: Callable[[Frame], int], both_results: bool = False
) -> Handler:
    """Make FBT's invop handler (fbt_invop).

    `caller` finds the caller for stack traces; `both_results`: a return probe has the second result
    as well.
    """
    buckets = table.buckets

    def fbt_invop(address: int, frame: Frame, _extra: int) -> int:
        record = buckets[address >> 4 & TABLE_MASK]
        while record is not None and record.address != address:
            record = record.hash_next
        if record is None:
            return 0
        core.find_caller = caller
        if record.roffset:
            first, second = frame.results()
            fire(record.probe_id, record.roffset, first, second if both_results else 0)
        else:
            arg0, arg1, arg2, arg3, arg4 = frame.arguments()
            fire(record.probe_id, arg0, arg1, arg2, arg3, arg4)
        core.find_caller = None
        return record.saved

    return fbt_invop
