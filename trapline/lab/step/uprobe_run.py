"""Recording a uprobe of a Linux program: `trapline step --uprobe`.

There is no D here: what a uprobe does is a line of text, as `trapline uprobe` prints it.
"""

from __future__ import annotations

from emu.guest.base import RunState
from emu.guest.linux.fs.stdio import Standard
from emu.isa.disassembly import Syntax
from trapline.ftrace.definition import parse
from trapline.ftrace.errors import UprobeEventError
from trapline.ftrace.uprobe_events import EventTrace, TraceError, check_site, explain, resolve
from trapline.lab.step.machines import StepRequest
from trapline.lab.step.names import Names
from trapline.lab.step.recorder import Recorder
from trapline.lab.step.recording import Recording, StepError
from trapline.lab.step.steps import FiringSteps, listed_fields, patching
from trapline.lab.step.subject import LinuxSubject
from trapline.machine.linux_machine import EvalTime, LinuxOptions, start_guest
from trapline.machine.programs import split
from trapline.support.own_files import TargetError, own_program


def record_uprobe(request: StepRequest, syntax: Syntax) -> Recording:
    """Run a Linux program until a uprobe has been hit as often as asked, and return what happened.

    Raises `StepError` and `emu.guest.base.GuestError`.
    """
    if not request.command:
        raise StepError("a Linux program is needed: -c 'PROGRAM ARGUMENTS'")
    try:
        words = own_program(split(request.command), request.isa)
    except TargetError as error:
        raise StepError(str(error)) from None
    except ValueError as error:
        raise StepError(f"-c {request.command}: {error}") from None
    guest = start_guest(LinuxOptions(words, root=request.root, evaltime=EvalTime.EXEC, standard=Standard()))
    subject = LinuxSubject(guest)
    recorder = Recorder(subject, request.count)
    lines: list[str] = []

    def write(line: str) -> None:
        lines.append(line)
        recorder.clauses.fire(None, (), lambda: None, name=f"{definition.group}:{definition.event}")

    try:
        definition = parse(resolve(guest, request.clause)[0], guest.isa)
        events = EventTrace(guest, write)
        check_site(guest, definition)
        events.add(definition)
    except UprobeEventError as error:
        raise StepError(explain(error)) from None
    except TraceError as error:
        raise StepError(str(error)) from None
    recorder.attach((guest.traps,))
    while not recorder.hit_recorder.done and guest.run(None) is not RunState.FINISHED:
        pass
    if not recorder.hit_recorder.hits:
        raise StepError(f"{request.clause}: did not fire before the program ended")
    names = Names(subject, syntax)
    steps = FiringSteps(subject, names)
    firings = tuple(steps.firing(hit, names.listings(hit.address)) for hit in recorder.hit_recorder.hits)
    enabling = tuple(patching(subject, names, recorder.hit_recorder.hits[0].address)) if request.from_enable else ()
    isa = guest.isa
    return Recording(
        isa.name, "linux", "host", request.clause, request.command, recorder.hit_recorder.names,
        isa.registers.pc, isa.registers.sp, tuple(listed_fields(isa)), isa.word, "", enabling, firings, "".join(lines),
        ("A uprobe stays installed until the program ends, so the bytes are not put back here.",),
    )  # fmt: skip
