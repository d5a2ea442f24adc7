"""`trapline.step`: the firing of a probe, recorded step by step."""

from __future__ import annotations

from dataclasses import fields
from html import escape
from pathlib import Path

from emu.guest.base import GuestError
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import DEFAULT_ISA
from trapline.api import TraplineError
from trapline.consumer.errors import ConsumerError
from trapline.d.errors import CompileError
from trapline.lab.displace.bench import DisplaceError, isa_of
from trapline.lab.step.faults import FAULTS
from trapline.lab.step.machines import StepRequest
from trapline.lab.step.recording import Recording, StepError
from trapline.lab.step.run import record
from trapline.player.model import Played


class StepRecording(Recording):
    """A recording that a notebook plays: the page of `trapline step --html`, in a frame."""

    __slots__ = ()

    def html(self) -> str:
        """Return the page that plays it, which needs no other file."""
        from trapline.player.page import page  # noqa: PLC0415  only its user waits for jinja2

        return page([Played(self.isa, self)])

    def _repr_html_(self) -> str:
        style = "width: 100%; height: 44rem; border: 1px solid #8888"
        return f'<iframe title="{escape(self.clause)}" style="{style}" srcdoc="{escape(self.html())}"></iframe>'


def step(
    clause: str,
    *,
    isa: str = DEFAULT_ISA.name,
    command: str | None = None,
    root: str | Path | None = None,
    guest: str | None = None,
    trap: str = "host",
    count: int = 1,
    from_enable: bool = False,
    fault: str | None = None,
) -> StepRecording:
    """Record the firing of a probe, instruction by instruction.

        >>> recording = trapline.step("fbt::sys_getpid:entry", command="getpid 1", isa="riscv64")
        >>> first = recording.firings[0].steps[0]
        >>> first.text, first.patch.before_text
        ('c.ebreak', 'c.sdsp ra, 0x18(sp)')

    `clause` is a probe description, which may have a predicate and a body.  `command` is what the
    guest runs, and `root` the directory that a Linux program sees as /; None is the kernel guest's
    start-up script.  `guest` is kernel, linux or linux-kernel; None: as `command` demands.  `trap`
    is host or guest: who handles the breakpoint.  `count` firings are recorded; with
    `from_enable` the patching, too.  `fault` is a mistake that is made on purpose, as of `trapline
    step --fault`.  A notebook plays the result.  Raises `TraplineError`.
    """
    if trap not in {one.value for one in TrapPath}:
        raise TraplineError(f"'{trap}' is not a trap path: there are {', '.join(one.value for one in TrapPath)}")
    if fault is not None and fault not in FAULTS:
        raise TraplineError(f"'{fault}' is not a fault: there are {', '.join(FAULTS)}")
    try:
        request = StepRequest(
            clause,
            isa_of(isa),
            guest,
            TrapPath(trap),
            command,
            None if root is None else Path(root),
            count=count,
            from_enable=from_enable,
            fault=None if fault is None else FAULTS[fault],
        )
        found = record(request)
        return StepRecording(**{one.name: getattr(found, one.name) for one in fields(found)})
    except (StepError, CompileError, GuestError, ConsumerError, DisplaceError) as error:
        raise TraplineError(str(error)) from None
