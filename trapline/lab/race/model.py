"""The model: in each state, the steps that any CPU may take, and the failures of a step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final

from emu.isa.base import Events, Isa
from emu.isa.fetch import Erratum
from trapline.lab.race import fork
from trapline.lab.race.fork import ForkSteps
from trapline.lab.race.memory import CodeView, Content, Fetch, History, canonical
from trapline.lab.race.methods import FORK, LOOKS_AGAIN, METHODS, RETURN, SELF, Method, Own, plan
from trapline.lab.race.own_handler import HandlerSteps, Outcome
from trapline.lab.race.patch import Kind, NoPortError, Patch, RaceError
from trapline.lab.race.patcher_steps import PATCHER, PatcherSteps
from trapline.lab.race.processor import Executed, Processor
from trapline.lab.race.state import NEW, OLD, Cpu, Failure, Mode, Move, World

# Breakpoints, as a disassembler names them: the user's own handler may be for any of them.
_BREAKPOINTS: Final = frozenset({"int3", "brk", "ebreak", "c.ebreak"})
# The name in tokens of the patching CPU that executes the code itself.
_ITSELF: Final = f"{PATCHER}x"
# Instructions of a pass: code that loops is left after so many.
_LONGEST_PASS: Final = 12


def erratum_of(isa: Isa, name: str) -> Erratum:
    """Return a known bug of an ISA's CPUs.  Raises `NoPortError`."""
    if name not in isa.fetching.errata:
        raise NoPortError(f"{isa.name} has no erratum '{name}'")
    return isa.fetching.errata[name]


@dataclass(frozen=True)
class Race:
    """The race to explore."""

    patch: Patch
    method: str
    scenario: str = "toggle"
    cpus: int = 2
    """The number of CPUs: the patching one and those that execute."""
    passes: int = 2
    """The number of times that each executing CPU enters the code."""
    own: Own | None = None
    """What `method` names, if it is not one of `METHODS`."""
    coherent: bool = False
    """Whether every fetch sees the newest bytes: no CPU keeps old ones."""
    erratum: str = ""
    """A known bug that the patching CPU has (`emu.isa.fetch.Fetching.errata`); "": none."""

    @property
    def writing(self) -> Method:
        """The method itself."""
        return self.own.method if self.own else METHODS[self.method]


class Model:
    """The steps of a race."""

    def __init__(self, race: Race, processor: Processor | None = None) -> None:
        self.race = race
        self.patch = race.patch
        if race.own and race.own.handler:
            race.own.handler.begin()
        plan_ = plan(race.patch, race.writing, race.scenario)
        self.script = plan_.script
        self.processor = processor or Processor(race.patch)
        self.view = CodeView(race.patch)
        self._patcher = PatcherSteps(race.patch, plan_.script)
        self._forks = ForkSteps(race.patch)
        handler = race.own.handler if race.own else None
        self._handler = handler and HandlerSteps(race.patch, self.processor, self.view, handler, self._has_instruction)
        self._trap = race.patch.isa.traps.breakpoints[-1]
        self._erratum = self._find_erratum(race)
        self.start = next(start for start in self.patch.starts if self._comes_to_site(start))
        """The address at which the CPUs enter the code."""
        self._repeats = bool(self._erratum) and self._leads_back()
        self._ends = {path: self._run(self.start, patched=path == NEW)[-1] for path in (OLD, NEW)}
        self.fetched: set[tuple[int, bytes]] = set()
        """The instructions that were fetched at patched bytes, with their addresses."""
        self.between: set[int] = set()
        """The operations of the script before which a CPU executed patched bytes."""
        data = self.patch.new if plan_.patched else self.patch.old
        cpu = Cpu(Mode.RUNS, self.start, self.processor.initial, race.passes, OLD | NEW, 0, 0)
        size, unit = len(data), self.patch.isa.fetching.unit
        self._cuts = (0, *(at for at in range(1, size) if (self.patch.site + at) % unit == 0), size)
        bit = int(plan_.patched)
        itself = race.scenario == SELF
        if race.cpus < 2 and not itself:
            raise RaceError(f"one CPU alone has no race but in the scenario '{SELF}'")
        self.first = World(
            0,
            (),
            0,
            (Content(0, data),),
            0,
            bit,
            bit,
            bit,
            known=plan_.known,
            diverts=False,
            cpus=(cpu,) * (race.cpus - 1) + (self._away(cpu),) * itself,
            own=(Content(0, data),) * itself,
        )

    @staticmethod
    def _find_erratum(race: Race) -> Erratum | None:
        """Return the known bug that the patching CPU has.  Raises `RaceError`."""
        if not race.erratum:
            return None
        if race.scenario != SELF:
            raise RaceError(f"{race.erratum} is about a CPU that executes what it has stored: scenario '{SELF}'")
        return erratum_of(race.patch.isa, race.erratum)

    def _comes_to_site(self, start: int) -> bool:
        """Return whether the plain code leads from an address to the patch."""
        return start == self.patch.site or any(done.pc == self.patch.site for done in self._run(start, patched=False))

    def _run(self, start: int, *, patched: bool) -> list[Executed]:
        """Return the execution of one CPU alone, from an address until it leaves the code."""
        patch, jumps = self.patch, patched and self.patch.kind is Kind.JUMP
        content = (Content(0, patch.new if jumps else patch.old),)
        done = [Executed(self.processor.initial, start, "")]
        while len(done) <= _LONGEST_PASS and not self._left(start, done[-1]):
            state, pc, _ = done[-1]
            done.append(self.processor.execute(state, pc, self.view.fetches(content, pc)[0].code))
        return done[1:]

    def _leads_back(self) -> bool:
        """Return whether the code jumps to the patch, soon enough for the erratum."""
        assert self._erratum is not None
        path = [self.start, *(done.pc for done in self._run(self.start, patched=False))]
        return any(
            self._is(Events.BRANCH, pc) and self._touches(after, 1)
            for pc, after in islice(pairwise(path), self._erratum.within)
        )

    def _is(self, kind: Events, pc: int) -> bool:
        """Return whether the plain instruction at an address is of a kind."""
        code = self.view.fetches((Content(0, self.patch.old),), pc)[0].code
        return bool(self.patch.isa.events(code) & kind)

    def _left(self, start: int, done: Executed) -> bool:
        return bool(done.fault) or not start <= done.pc < self.patch.stop

    # -- the steps

    def visible(self, world: World, cpu: Cpu) -> History:
        """Return the contents that a CPU may fetch."""
        return world.present(cpu) if self.race.coherent else world.visible(cpu)

    def moves(self, world: World, *, reduce: bool = True) -> list[Move]:
        """Return the steps to explore from a state.

        `reduce`: if a CPU's next instruction has nothing to do with the patch, its order does not
        matter, and it is the only step (a persistent set of one).
        """
        if reduce:
            for number, cpu in enumerate(world.cpus):
                if self._is_local(cpu):
                    return [*self._fetched(world, number)]
        found = list(self._patcher.moves(world))
        for number in range(len(world.cpus)):
            found += self._patcher.answers(world, number)
            found += self._steps(world, number)
        return found

    def canonical(self, world: World) -> World:
        """Return the state that represents all equivalent states."""
        last = len(world.history) - 1
        world = fork.canonical(world)
        elsewhere = [cpu.mode is Mode.DONE or cpu.forked or cpu.patches for cpu in world.cpus]
        floors = [last if other else cpu.floor for cpu, other in zip(world.cpus, elsewhere, strict=True)]
        oldest = min(floors)
        marks = frozenset({*floors, max(world.clean, oldest)})
        if not oldest and len(world.history) == 1:
            return world
        history, positions = canonical(world.history, marks, self._cuts)
        cpus = tuple(
            cpu if other else cpu._replace(floor=positions[cpu.floor])
            for cpu, other in zip(world.cpus, elsewhere, strict=True)
        )
        return world._replace(history=history, clean=positions[max(world.clean, oldest)], cpus=cpus)

    def finished(self, world: World) -> bool:
        """Return whether the script and all CPUs have finished."""
        done = all(cpu.mode in {Mode.DONE, Mode.PATCHES} for cpu in world.cpus)
        return done and world.at == len(self.script) and not world.pending

    def _is_local(self, cpu: Cpu) -> bool:
        """Return whether a CPU's next step touches no patched byte, and does not come between them."""
        # What leads to the trampoline's handler, which takes no interrupt, does not commute with interrupts.
        if cpu.mode is not Mode.RUNS or cpu.hijacked or self._touches(cpu.pc, 1):
            return False
        fetch = self.view.fetches((Content(0, self.patch.old),), cpu.pc)[0]
        if self._touches(cpu.pc, len(fetch.code)):
            return False
        after = self.processor.execute(cpu.state, cpu.pc, fetch.code)
        return not self.patch.site < after.pc < self.patch.end

    def _touches(self, pc: int, size: int) -> bool:
        return pc < self.patch.end and self.patch.site < pc + size

    def _steps(self, world: World, number: int) -> Iterator[Move]:
        mode = world.cpus[number].mode
        if mode is Mode.RUNS:
            yield from self._fetched(world, number)
        elif mode is Mode.TRAPPED:
            yield self._handled(world, number)
        elif mode is Mode.LEAVES:
            yield self._left_behind(world, number)
        if self.race.scenario == FORK:
            yield from self._forks.moves(world, number)

    def _fetched(self, world: World, number: int) -> Iterator[Move]:
        cpu = world.cpus[number]
        if not self._touches(cpu.pc, 1) and cpu.pc > self.patch.site:
            visible = world.history[:1]
        else:
            visible = self.visible(world, cpu)
        choices = self.view.fetches(visible, cpu.pc)
        for fetch in choices:
            name = self._name(world, number)
            token = name if len(choices) == 1 else f"{name}:{fetch.code.hex()}"
            move = self._judged(world, number, fetch, token)
            yield move
            yield from self._repeated(world, number, fetch.code, move)

    @staticmethod
    def _name(world: World, number: int) -> str:
        """Return the name of a CPU in tokens."""
        return _ITSELF if world.cpus[number].patches else f"{number + 1}"

    def _repeated(self, world: World, number: int, code: bytes, move: Move) -> Iterator[Move]:
        """Yield the step after which a CPU with the erratum executes again what follows its store.

        That is something that only changes registers.
        """
        cpu, erratum = world.cpus[number], self._erratum
        if erratum is None or not (self._repeats and cpu.repeats) or cpu.steps >= erratum.most or move.world is None:
            return
        after = move.world.cpus[number]
        if self._touches(cpu.pc, len(code)) or self._is(Events.BRANCH | Events.STORE, cpu.pc):
            return
        again = after._replace(pc=self.start, repeats=False)
        text = f"{move.text}, and goes on once more from {self.patch.where(self.start)} ({self.race.erratum})"
        yield Move(f"{move.token}+", text, self._with(world, number, again))

    def _judged(self, world: World, number: int, fetch: Fetch, token: str) -> Move:
        """Return the step that executes a fetched instruction, or its failure."""
        cpu, patch, code = world.cpus[number], self.patch, fetch.code
        text = f"executes {code.hex(' ')} ({patch.text(code, cpu.pc)}) at {patch.where(cpu.pc)}"
        if not self._touches(cpu.pc, len(code)):
            return self._executed(world, number, code, token, text)
        self.fetched.add((cpu.pc, code))
        self.between.add(world.at)
        if not fetch.settled and not cpu.patches:
            return self._wrong(token, text, "unpredictable", self._unsettled(code))
        if self._is_trap(code) and (cpu.pc == patch.site or self._handler):
            trapped = cpu._replace(mode=Mode.TRAPPED)
            return Move(
                token,
                f"takes the breakpoint {code.hex(' ')} at {patch.where(cpu.pc)}",
                self._with(world, number, trapped),
            )
        paths = self._paths(cpu.pc, code)
        if not paths:
            return self._wrong(token, text, "torn", self._torn(cpu, code))
        failure = self._stale(world, cpu, paths)
        if failure is not None:
            return Move(token, text, None, failure)
        return self._executed(world, number, code, token, text, paths)

    def _is_trap(self, code: bytes) -> bool:
        own = self.patch.kind is Kind.TRAP and code.startswith(self.patch.new)
        if self._handler and self.patch.text(code, 0).split()[0] in _BREAKPOINTS:
            own = code != self.patch.old[: len(code)]
        return own or (code == self._trap and code != self.patch.old[: len(code)])

    def _paths(self, pc: int, code: bytes) -> int:
        """Return the images (OLD, NEW) that contain these bytes as an instruction."""
        patch, at, found = self.patch, pc - self.patch.address, 0
        for path, patched in ((OLD, False), (NEW, True)):
            if self._has_instruction(path, pc) and patch.image(patched=patched)[at : at + len(code)] == code:
                found |= path
        return found

    def _has_instruction(self, path: int, pc: int) -> bool:
        """Return whether an instruction of an image (OLD, NEW) begins at an address."""
        patch = self.patch
        before = path == OLD or pc < patch.site
        return pc in patch.boundaries if before else pc in patch.patched_boundaries

    def _executed(self, world: World, number: int, code: bytes, token: str, text: str, paths: int = OLD | NEW) -> Move:
        cpu = world.cpus[number]
        done = self.processor.execute(cpu.state, cpu.pc, code)
        return self._went_on(world, number, done, cpu.paths & paths, token, text)

    def _went_on(self, world: World, number: int, done: Executed, paths: int, token: str, text: str) -> Move:
        """Return the step after which a CPU has executed something."""
        cpu = world.cpus[number]
        if done.fault:
            text += f": {done.fault}"
        if not self._left(self.start, done) and cpu.steps < _LONGEST_PASS - 1:
            after = cpu._replace(mode=Mode.RUNS, pc=done.pc, state=done.state, paths=paths, steps=cpu.steps + 1)
            return Move(token, text, self._with(world, number, after))
        expected = [self._ends[path] for path in (OLD, NEW) if paths & path]
        # A copy that faults does so at its own address.
        faults = bool(done.fault) and any((end.state, end.fault) == (done.state, done.fault) for end in expected)
        if done not in expected and not faults:
            state, pc, fault = expected[0]
            why = (
                f"it comes to {self.patch.where(done.pc)}{done.fault and ' with ' + done.fault}, not to "
                f"{self.patch.where(pc)}{fault and ' with ' + fault}"
                if (pc, fault) != done[1:]
                else f"its registers or memory are not those of the plain code (state {done.state}, not {state})"
            )
            return self._wrong(token, text, "wrong result", why)
        after = cpu._replace(mode=Mode.LEAVES) if cpu.hijacked else self._again(cpu)
        return Move(token, text, self._with(world, number, after))

    def _again(self, cpu: Cpu) -> Cpu:
        """Return a CPU that has left the code: it enters the code again, or is done."""
        if cpu.patches:
            return self._away(cpu)
        if cpu.passes == 1:
            return Cpu(Mode.DONE, 0, 0, 0, 0, 0, 0, cpu.forked)
        return Cpu(Mode.RUNS, self.start, self.processor.initial, cpu.passes - 1, OLD | NEW, cpu.floor, 0, cpu.forked)

    def _away(self, cpu: Cpu) -> Cpu:
        """Return the patching CPU itself, which has left the code."""
        return Cpu(Mode.PATCHES, self.start, self.processor.initial, cpu.passes, OLD | NEW, 0, 0, patches=True)

    def _probed(self, cpu: Cpu) -> bool:
        """Return whether the probes are those of the process that a CPU executes."""
        return not cpu.forked or self._forks.inherits

    def _left_behind(self, world: World, number: int) -> Move:
        """Return the step of the trampoline's handler, after a function with a return probe."""
        token = self._name(world, number)
        if world.freed:
            why = "what leads the function back to its caller is gone: the process is killed"
            return self._wrong(token, "takes the breakpoint of the trampoline", "unclaimed", why)
        fires = "fires the return probe" if world.linked else "fires nothing"
        text = f"the trampoline's handler {fires}, and continues at the caller"
        if world.linked & ~world.may:
            return self._wrong(token, text, "late", "a return probe fires after its disabling has returned")
        return Move(token, text, self._with(world, number, self._again(world.cpus[number])))

    def _handled(self, world: World, number: int) -> Move:
        """Return the step of a handler: it fires the probe and executes the instruction."""
        cpu, token, patch = world.cpus[number], self._name(world, number), self.patch
        synchronized = self._patcher.refetching(world, cpu, synchronize=False)
        world = self._with(self._patcher.trapped(world, cpu), number, synchronized)
        if self._handler:
            now = world.present(cpu)[-1].data
            outcome = self._handler.outcome(cpu, self._patcher.data(world, cpu), now)
            if outcome.done or outcome.wrong or patch.kind is Kind.JUMP:
                return self._by_theirs(world, number, outcome)
        if world.diverts and patch.kind is Kind.JUMP:
            done = self._diverted(cpu)
            text = "the temporary breakpoint's handler does what the new bytes do"
            return self._went_on(world, number, done, cpu.paths & NEW, token, text)
        if patch.kind is Kind.JUMP or not world.known or not self._probed(cpu):
            looks = patch.kind is Kind.JUMP or patch.provider in LOOKS_AGAIN
            if looks and not self._is_trap(self.view.fetches(world.present(cpu), cpu.pc)[0].code):
                text = "the handler finds no breakpoint in memory any more, and returns to the same address"
                return Move(token, text, self._with(world, number, synchronized._replace(mode=Mode.RUNS)))
            return self._wrong(
                token,
                "the handler looks for the breakpoint's record",
                "unclaimed",
                "no record has this breakpoint: the kernel panics, or the process is killed",
            )
        fired = [f"probe {owner + 1}" for owner in range(2) if world.linked >> owner & 1]
        text = f"the handler fires {' and '.join(fired) or 'nothing'}, and executes the displaced instruction"
        if world.linked & ~world.may:
            return self._wrong(token, text, "late", "a probe fires after its disabling has returned")
        if self.race.scenario == RETURN and world.linked:
            world = self._with(world, number, synchronized._replace(hijacked=True))
            text += "; the function will return to the trampoline"
        return self._went_on(world, number, self.processor.displaced(cpu.state), cpu.paths, token, text)

    def _by_theirs(self, world: World, number: int, outcome: Outcome) -> Move:
        """Return the step that the user's own handler has made."""
        cpu, token, text = world.cpus[number], self._name(world, number), outcome.text
        if outcome.wrong:
            return self._wrong(token, text, "wrong result", outcome.wrong)
        if outcome.done is None:
            return self._wrong(token, text, "unclaimed", "no handler has this breakpoint: the kernel panics")
        if outcome.done.pc == cpu.pc:
            return Move(token, text, self._with(world, number, cpu._replace(mode=Mode.RUNS)))
        failure = self._stale(world, cpu, outcome.paths)
        if failure is not None:
            return Move(token, text, None, failure)
        return self._went_on(world, number, outcome.done, cpu.paths & outcome.paths, token, text)

    def _stale(self, world: World, cpu: Cpu, paths: int) -> Failure | None:
        """Return the failure of a CPU that has executed bytes of these images, None if none."""
        at_site = cpu.pc == self.patch.site
        if paths == OLD and at_site and world.on and self._probed(cpu):
            return Failure("missed", "the probe is enabled, and the CPU executes the old instruction")
        if paths == NEW and at_site and not world.may:
            return Failure("late", "the probe is disabled, and the CPU still executes the patch")
        if not paths & cpu.paths:
            return Failure("mixed", "one instruction is of the old code, and one of the new")
        return None

    def _diverted(self, cpu: Cpu) -> Executed:
        """Return the step that executes the new bytes instead of the temporary breakpoint."""
        view, done = (Content(0, self.patch.new),), Executed(cpu.state, cpu.pc, "")
        while self._touches(done.pc, 1) and not done.fault and done.pc >= self.patch.site:
            code = self.view.fetches(view, done.pc)[0].code
            done = self.processor.execute(done.state, done.pc, code)
        return done

    # -- helpers

    @staticmethod
    def _with(world: World, number: int, cpu: Cpu) -> World:
        return world._replace(cpus=(*world.cpus[:number], cpu, *world.cpus[number + 1 :]))

    @staticmethod
    def _wrong(token: str, text: str, kind: str, why: str) -> Move:
        return Move(token, text, None, Failure(kind, why))

    def _torn(self, cpu: Cpu, code: bytes) -> str:
        done = self.processor.execute(cpu.state, cpu.pc, code)
        end = f"it comes to {self.patch.where(done.pc)}{done.fault and ' with ' + done.fault}"
        return f"that instruction is neither in the old code nor in the new: {end}"

    def _unsettled(self, code: bytes) -> str:
        allowed = self.patch.isa.fetching.concurrent
        assert allowed is not None
        named = "of these the architecture does not permit" if allowed(code) else "the architecture does not permit"
        return f"the word changes while it is executed, which {named}: constrained unpredictable"
