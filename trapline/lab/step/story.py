"""From the events of a hit to the steps of a firing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from emu.displaced import DisplacedTable
from emu.isa.base import Isa
from trapline.lab.step.events import Event, Hit, Kind
from trapline.lab.step.names import LOCK, Names
from trapline.lab.step.recording import Access, Cost, DifStep, Firing, Mode, Patch, Stage, Step, Word
from trapline.lab.step.sentences import Instruction, sentence
from trapline.lab.step.subject import Subject

_BEHIND: Final = 16
# What exception illumos' SDT uses on x86-64.
LOCK_NOP: Final = "#UD, vector 6: LOCK before a nop is a fault, so the saved rip points at it."


@dataclass(frozen=True, slots=True)
class _Made:
    """A step before it has its number, its changes and its costs."""

    stage: Stage
    sentence: str
    text: str = ""
    code: bytes = b""
    mode: Mode | None = None
    facts: Mapping[str, int | str] | None = None
    dif: DifStep | None = None
    patch: Patch | None = None
    cost: Cost = field(default_factory=Cost)
    out_of_line: bool = False
    fault: bool = False
    """Whether it is a step that a right run does not have."""


def invop_name(table: DisplacedTable, answer: int) -> str:
    """Return what a handler's answer to dtrace_invop() means."""
    if not answer:
        return "not mine"
    if not table.by_code:
        return "the saved instruction word"
    names = [row.code for row in table.rows if row.invop == answer]
    return f"DTRACE_INVOP_{names[0]}" if names else "claimed"


class Story:
    """Makes the firings of one run."""

    def __init__(self, subject: Subject, names: Names) -> None:
        self._subject = subject
        self._isa: Isa = subject.isa
        self._names = names
        self._stage = Stage.FRAME
        self._hit = Hit(0)
        self._called_probe = False
        self._makers: Mapping[Kind, Callable[[Event, Event], list[_Made]]] = {
            Kind.FETCH: self._fetch,
            Kind.EXECUTE: self._execute,
            Kind.CALLED: self._called,
            Kind.ASKED: self._asked,
            Kind.ANSWERED: self._answered,
            Kind.FIRED: self._fired,
            Kind.DIF: self._dif,
            Kind.RECORDED: self._recorded,
            Kind.UNWANTED: self._unwanted,
            Kind.PLANNED: self._planned,
            Kind.ELSEWHERE: self._elsewhere,
            Kind.RESUMED: self._resumed,
            Kind.AFTER: self._goes_on,
            Kind.STALE: self._stale,
        }

    def firing(self, hit: Hit, listing: Mapping[str, tuple[str, ...]]) -> Firing:
        """Return the firing that a hit's events tell of."""
        self._hit = hit
        self._stage = Stage.FRAME
        self._called_probe = False
        steps: list[Step] = []
        cost = Cost()
        for number, event in enumerate(hit.events):
            following = hit.events[number + 1] if number + 1 < len(hit.events) else event
            made = self._makers[event.kind](event, following)
            for place, one in enumerate(made):
                last = place == len(made) - 1
                memory = tuple(self._accesses(event)) if last else ()
                changes = self._changes(event, following) if last else {}
                cost = _plus(cost, replace(one.cost, accesses=len(memory) if one.code else 0))
                steps.append(self._step(len(steps), event, one, memory, changes, cost))
        fired = next((event for event in hit.events if event.kind is Kind.FIRED), None)
        first = hit.events[0]
        return Firing(
            fired.name if fired else "",
            fired.probe_id if fired else 0,
            *hit.thread,
            fired.arguments if fired else (),
            self._names.place(fired.caller) if fired and fired.caller else "",
            first.registers,
            tuple(Word(address, value) for address, value in hit.stack),
            hit.frame,
            listing,
            tuple(steps),
            b"".join(event.record for event in hit.events),
        )

    # -- one step

    def _step(
        self,
        index: int,
        event: Event,
        made: _Made,
        memory: tuple[Access, ...],
        changes: Mapping[str, tuple[int, int]],
        cost: Cost,
    ) -> Step:
        mode = made.mode or (Mode.KERNEL if self._isa.is_kernel_address(event.pc) else Mode.USER)
        return Step(
            index,
            made.stage,
            mode,
            self._names.place(event.pc),
            event.pc,
            made.code,
            made.text,
            made.sentence,
            self._names.source(event.pc) if made.code else None,
            changes,
            memory,
            made.facts or {},
            made.dif,
            made.patch,
            cost,
            made.out_of_line,
            "fault" if made.fault else "",
        )

    def _changes(self, event: Event, following: Event) -> dict[str, tuple[int, int]]:
        return {
            name: (value, following.registers[name])
            for name, value in event.registers.items()
            if following.registers.get(name, value) != value
        }

    def _accesses(self, event: Event) -> list[Access]:
        return [
            Access(one.write, one.address, one.size, one.value, one.before, self.field(one.address))
            for one in event.accesses
        ]

    def field(self, address: int) -> str:
        """Return the name of a field of the trap frame, or the symbol at an address; "": neither."""
        frame, word = self._hit.frame, self._isa.word
        fields = self._isa.traps.frame
        if frame is not None and 0 <= address - frame < word * len(fields):
            return fields[(address - frame) // word] or "(padding)"
        return self._subject.object_at(address)

    # -- the kinds of events

    def _instruction(self, event: Event) -> tuple[bytes, str]:
        size, text = self._names.instruction(event.code, event.pc)
        return event.code[:size], text

    def _fetch(self, event: Event, following: Event) -> list[_Made]:
        code, text = self._instruction(event)
        guest = following.kind is Kind.EXECUTE
        exception = _Made(
            Stage.EXCEPTION, self._exception(event, following, guest=guest), "exception", code, cost=Cost(1, traps=1)
        )
        if self._subject.is_machinery(event.pc):
            self._stage = Stage.FRAME
            return [replace(exception, text=text)]
        patch = self._patch(event)
        made = [_Made(Stage.PATCHED, self._patched(patch), text, code, patch=patch), exception]
        if not guest:
            said = "No trap frame is built: the handlers read the interrupted registers in the CPU itself."
            made.append(_Made(Stage.FRAME, said, "no frame", mode=Mode.EMULATOR))
        return made

    def _patch(self, event: Event) -> Patch:
        original = self._subject.original(event.pc, _BEHIND)
        now = event.code
        size, before = self._names.instruction(original, event.pc)
        _, after = self._names.instruction(now, event.pc)
        longest = next((len(one) for one in self._isa.traps.breakpoints if now.startswith(one)), 0)
        size = max(size, longest)
        return Patch(event.pc, self._names.place(event.pc), original[:size], now[:size], before, after)

    def _patched(self, patch: Patch) -> str:
        changed = [place for place, (a, b) in enumerate(zip(patch.before, patch.after, strict=False)) if a != b]
        if not changed:
            return "The CPU fetches the program's own instruction."
        what = "the first byte" if changed == [0] else f"{len(patch.after)} bytes"
        if changed == [0] and len(patch.before) == 1:
            what = "the only byte"
        return (
            f"The CPU fetches {patch.after_text}: the provider has written it over {what} of "
            f"{patch.before_text}, which is now the displaced instruction."
        )

    def _exception(self, event: Event, following: Event, *, guest: bool) -> str:
        model = self._isa.traps.exception
        if event.code[:1] == LOCK and not any(one == LOCK for one in self._isa.traps.breakpoints):
            model = LOCK_NOP
        if not guest:
            return f"{model} The emulator takes this exception itself: the kernel's vector does not run."
        pushed = [one for one in event.accesses if one.write]
        stack = ""
        if pushed:
            stack = f" The CPU itself pushes {len(pushed)} words on the stack, as each x86 does."
        return f"{model}{stack} The CPU continues in the kernel's vector, {self._names.place(following.pc)}."

    def _execute(self, event: Event, following: Event) -> list[_Made]:
        code, text = self._instruction(event)
        if event.pc == self._subject.handler_end:
            self._stage = Stage.RETURN
        elif self._subject.is_machinery(event.pc):
            self._stage = Stage.DISPLACED
        elif self._stage is Stage.RETURN and self._hit.window is None:
            self._stage = Stage.FRAME
        patch = None
        if self._hit.window is not None:
            self._stage = Stage.RETURN if self._called_probe else Stage.PROBE
            if event is self._hit.events[0]:
                patch = self._patch(event)
        one = self._as_instruction(event, following, code, text, self._stage)
        said = sentence(one)
        if any(code == one for one in self._isa.traps.breakpoints):
            said = "A second breakpoint ends the copy. The handlers are asked again, to lead back."
            return [_Made(Stage.EXCEPTION, said, text, code, cost=Cost(1, traps=1), out_of_line=True)]
        if self._subject.is_machinery(event.pc):
            said = f"Out of line: {said[0].lower()}{said[1:]}"
        out_of_line = self._subject.is_machinery(event.pc)
        made = _Made(self._stage, said, text, code, cost=Cost(1), out_of_line=out_of_line)
        if patch is not None and patch.before != patch.after:
            said = f"{self._patched(patch)} A jump raises no exception: {said[0].lower()}{said[1:]}"
            made = replace(made, stage=Stage.PATCHED, sentence=said, patch=patch)
        return [made]

    def _as_instruction(self, event: Event, following: Event, code: bytes, text: str, stage: Stage) -> Instruction:
        accesses = self._accesses(event)
        behind = event.pc + len(code)
        link = self._isa.registers.link
        called = (link is not None and following.registers.get(link) == behind != event.registers.get(link)) or any(
            one.write and one.value == behind for one in accesses
        )
        return Instruction(
            self._isa, stage, text, event.pc, len(code), following.pc, event.registers, following.registers,
            accesses, self._names.place, called,
        )  # fmt: skip

    def _called(self, event: Event, _following: Event) -> list[_Made]:
        probe = event.name == "dtrace_probe"
        self._stage = Stage.PROBE if probe else Stage.CHAIN
        self._called_probe = self._called_probe or probe
        words = {
            "dtrace_invop": "The kernel calls dtrace_invop(), which asks the handlers of DTrace's providers in turn. "
            "It is a gate: the emulator does it.",
            "dtrace_probe": "The kernel calls dtrace_probe() with the number of the probe and its arguments. "
            "It is a gate: the emulator does it.",
            "dtrace_pid_probe": "The kernel calls dtrace_pid_probe(), fasttrap's function for a breakpoint of a "
            "program. It is a gate: the emulator does it.",
        }
        return [_Made(self._stage, words[event.name], f"{event.name}()", mode=Mode.EMULATOR)]

    def _asked(self, event: Event, _following: Event) -> list[_Made]:
        address, frame = event.arguments
        facts: dict[str, int | str] = {"address": address, "at": self._names.place(address)}
        if frame:
            facts["frame"] = frame
        where = "the trap frame" if frame else "the CPU's registers"
        return [
            _Made(
                Stage.CHAIN, f"Asks {event.name}: is this breakpoint yours? It reads {where}.", f"{event.name}()",
                mode=Mode.EMULATOR, facts=facts, cost=Cost(handlers=1),
            )
        ]  # fmt: skip

    def _answered(self, event: Event, following: Event) -> list[_Made]:
        self._stage = Stage.DISPLACED
        table = self._isa.stub
        meaning = invop_name(table, event.answer)
        if event.answer and not self._isa.is_kernel_address(self._hit.address):
            meaning = "claimed"
        elif event.answer and event.moved and not table.by_code:
            meaning = "the word of a nop, for the handler has set the pc itself"
        facts: dict[str, int | str] = {"answer": event.answer, "meaning": meaning}
        if not event.answer:
            said = f"{event.name} answers 0: the breakpoint is not its own."
        elif event.moved and not self._hit.frame and not self._subject.is_machinery(following.pc):
            original = self._subject.original(self._hit.address, _BEHIND)
            _, text = self._names.instruction(original, self._hit.address)
            said = f"{event.name} claims the breakpoint."
            emulated = (
                f"{event.name} has emulated {text} itself, on the interrupted registers, and the program will go on at "
                f"{self._names.place(following.pc)}."
            )
            if event.pc == self._hit.address:
                return [
                    _Made(Stage.CHAIN, said, f"{event.name} answers", mode=Mode.EMULATOR, facts=facts),
                    _Made(
                        Stage.DISPLACED,
                        emulated + self._replaced_return(event, following),
                        text,
                        mode=Mode.EMULATOR,
                    ),
                ]
            back = any(one.kind is Kind.ELSEWHERE for one in self._hit.events)
            done = "The function has returned" if back else "The copy is done"
            said += f" {done}: the program will go on at {self._names.place(following.pc)}."
        elif event.moved:
            where = "where it is to go on" if self._hit.frame else self._names.place(following.pc)
            said = f"{event.name} claims the breakpoint, and has set the interrupted pc to {where}."
            if self._hit.frame and self._isa.is_kernel_address(self._hit.address):
                said += f" Its answer, {meaning}, makes the stub do no more than a nop would."
            said += self._replaced_return(event, following)
        else:
            said = f"{event.name} claims the breakpoint and answers {event.answer:#x}: {meaning}."
        return [_Made(Stage.CHAIN, said, f"{event.name} answers", mode=Mode.EMULATOR, facts=facts)]

    def _replaced_return(self, event: Event, following: Event) -> str:
        """Say whether a return address became that of a trampoline, as return probes do."""
        link = self._isa.registers.link
        pairs = [(one.before, one.value) for one in event.accesses if one.write]
        if link is not None:
            pairs.append((event.registers[link], following.registers.get(link, 0)))
        for before, after in pairs:
            if before and after and before != after and self._is_code(before) and not self._subject.locate(after):
                return (
                    f" It has replaced the return address {self._names.place(before)} by {after:#x}, where there is "
                    "another breakpoint: the probe will fire when the function returns."
                )
        return ""

    def _is_code(self, address: int) -> bool:
        found = self._subject.locate(address)
        return found is not None and bool(found.symbol)

    def _fired(self, event: Event, _following: Event) -> list[_Made]:
        execname, pid = self._hit.thread
        facts: dict[str, int | str] = {f"arg{index}": value for index, value in enumerate(event.arguments)}
        if event.caller:
            facts["caller"] = self._names.place(event.caller)
        call = f"dtrace_probe({event.probe_id}, ...)" if event.probe_id else "The handler"
        said = f"{call} fires {event.name} in {execname}, pid {pid}."
        return [_Made(Stage.PROBE, said, event.name, mode=Mode.EMULATOR, facts=facts)]

    def _dif(self, event: Event, _following: Event) -> list[_Made]:
        assert event.dif is not None
        role, offset, text, registers = event.dif
        operands = text.split("!")[0]
        if text.startswith("ret"):
            value = registers[int(operands.split("%r")[1])]
            said = f"The value of the {role} is {value:#x}."
            if role == "predicate":
                said = f"The predicate is {value:#x}: the clause {'runs' if value else 'does not run'}."
        else:
            comment = f" ({text.split('!')[1].strip()})" if "!" in text else ""
            said = f"DIF of the {role}: {_dif_effect(operands.strip(), registers)}{comment}."
        return [
            _Made(
                Stage.CLAUSE, said, text, mode=Mode.DIF, dif=DifStep(role, offset, text, registers), cost=Cost(dif=1),
            )
        ]  # fmt: skip

    def _recorded(self, event: Event, _following: Event) -> list[_Made]:
        size = len(event.record)
        said = (
            f"The clause has written a record of {size} bytes into the buffer of this CPU: "
            "the number of the enabling, the time, and the values."
            if size
            else "The clause is over; it has written no record of its own into the buffer."
        )
        return [_Made(Stage.CLAUSE, said, "record", mode=Mode.EMULATOR, facts={"record": event.record.hex(" ")})]

    def _unwanted(self, _event: Event, _following: Event) -> list[_Made]:
        return [_Made(Stage.CLAUSE, "The predicate is false: nothing is recorded.", "no record", mode=Mode.EMULATOR)]

    def _planned(self, event: Event, _following: Event) -> list[_Made]:
        original = self._subject.original(self._hit.address, _BEHIND)
        _, text = self._names.instruction(original, self._hit.address)
        return [
            _Made(
                Stage.DISPLACED,
                f"The emulator carries out the plan of {text} on the CPU's registers: {event.plan}.",
                text,
                mode=Mode.EMULATOR,
                facts={"instruction": text, "plan": str(event.plan)},
            )
        ]

    def _elsewhere(self, event: Event, following: Event) -> list[_Made]:
        count = following.instructions - event.instructions
        return [
            _Made(
                Stage.RETURN,
                f"The function runs ({count:,} instructions, which are not shown) and returns to the trampoline.",
                "the function runs",
                mode=Mode.USER,
            )
        ]

    def _goes_on(self, event: Event, following: Event) -> list[_Made]:
        code, text = self._instruction(event)
        if any(code == one for one in self._isa.traps.breakpoints):
            said = f"The CPU executes {text} and takes the exception."
            return [_Made(Stage.EXCEPTION, said, text, code, cost=Cost(1, traps=1))]
        one = self._as_instruction(event, following, code, text, Stage.RESUME)
        return [_Made(Stage.RESUME, sentence(one), text, code)]

    def _stale(self, event: Event, _following: Event) -> list[_Made]:
        patch = self._patch(event)
        said = (
            f"Memory has {patch.after_text} here, but the CPU executes {patch.before_text}, the instruction that it "
            "has in its instruction cache."
        )
        return [_Made(Stage.PATCHED, said, patch.before_text, patch.before, patch=patch, fault=True)]

    def _resumed(self, event: Event, _following: Event) -> list[_Made]:
        code, text = self._instruction(event)
        said = "The program continues as if the displaced instruction had run in its place."
        if self._hit.window is not None:
            said = "The kernel continues behind the probe."
        return [_Made(Stage.RESUME, said, text, code)]


def _dif_effect(text: str, registers: Sequence[int]) -> str:
    """Return what an instruction of DIF has done; its last register is what it sets."""
    name = text.split(" ", 1)[0]
    numbers = [int(number) for number in re.findall(r"%r(\d)", text)]
    if name in {"cmp", "tst", "scmp"}:
        return f"compares {' and '.join(f'{registers[number]:#x}' for number in numbers)}, and sets the flags"
    if not numbers:
        return f"{text.split(' ', 1)[-1]} is where it continues if the flags say so" if name.startswith("b") else name
    if name.startswith(("st", "push")):
        return f"stores %r{numbers[0]}, {registers[numbers[0]]:#x}"
    return f"%r{numbers[-1]} becomes {registers[numbers[-1]]:#x}"


def _plus(one: Cost, other: Cost) -> Cost:
    return Cost(
        one.instructions + other.instructions,
        one.accesses + other.accesses,
        one.traps + other.traps,
        one.handlers + other.handlers,
        one.dif + other.dif,
    )


def listed_fields(isa: Isa) -> Sequence[str]:
    """Return the names of the words of a trap frame."""
    return tuple(name or "(padding)" for name in isa.traps.frame)
