"""`trapline.step`: the firing of a probe, recorded step by step."""

from __future__ import annotations

from pathlib import Path

from emu.guest.base import GuestError
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import DEFAULT_ISA
from trapline.api.errors import TraplineError
from trapline.consumer.errors import ConsumerError
from trapline.d.errors import CompileError
from trapline.lab.displace import DisplaceError, isa_of
from trapline.lab.step.machines import StepRequest
from trapline.lab.step.recording import Recording, StepError
from trapline.lab.step.run import record


def step(
    clause: str,
    *,
    isa: str = DEFAULT_ISA.name,
    command: str | None = None,
    root: str | Path | None = None,
    guest: str | None = None,
    trap: str = "host",
    count: int = 1,
) -> Recording:
    """Record the firing of a probe, instruction by instruction.

        trapline.step("fbt::sys_getpid:entry", command="getpid 1", trap="guest").firings[0]

    `clause` is a probe description, which may have a predicate and a body.  `command` is what the
    guest runs, and `root` the directory that a Linux program sees as /; None is the kernel guest's
    start-up script.  `guest` is kernel, linux or linux-kernel; None: as `command` demands.  `trap`
    is host or guest: who handles the breakpoint.  `count` firings are recorded.  Raises
    `TraplineError`.
    """
    if trap not in {one.value for one in TrapPath}:
        raise TraplineError(f"'{trap}' is not a trap path: there are {', '.join(one.value for one in TrapPath)}")
    try:
        request = StepRequest(
            clause, isa_of(isa), guest, TrapPath(trap), command, None if root is None else Path(root), count=count
        )
        return record(request)
    except (StepError, CompileError, GuestError, ConsumerError, DisplaceError) as error:
        raise TraplineError(str(error)) from None
