"""The kernel guest with several CPUs: the order of their turns, and interrupts between them.

The CPU that is behind the others runs next, for a time that is drawn from a seed.  So the CPUs'
times differ by little more than the longest turn, and a run is the same on every host.  A turn ends
in user mode, where the kernel takes, gives back or waits for a lock (`gate_turn`), or when the CPU
waits for an interrupt.  None of these places depends on the probes in the kernel's text, so they do
not change the order.  A CPU that waits has no turn until an interrupt comes; the clock interrupts
only CPU 0 while it waits, as FreeBSD's cpu_idleclock() arranges it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from emu.engine.errors import GuestCrashError
from emu.engine.hits.watched import Turn, Watched, WatchKind
from emu.engine.time.clock import NANOSECONDS
from emu.guest.base import RunState
from emu.guest.kernel.boot import images
from emu.guest.kernel.guest import KernelGuest
from emu.guest.kernel.smp.cpus import Cpu, Cpus, Reason
from emu.guest.kernel.smp.text_changes import Patching, changes_of
from emu.guest.native_parts import cpu_number
from emu.isa.base import Isa
from emu.native.guest import GuestCode
from emu.support.plain import address_of, words

MOST: Final = 8
# The most instructions of a turn, while another CPU has something to do.
_LONGEST_TURN: Final = 2000
# The end of a turn while no other CPU has something to do.
_ENDLESS: Final = NANOSECONDS << 32
# The instructions that the holder of a lock executes before the lock is looked at again.
_MORE: Final = 100
# Turns after which a lock that no CPU gives back is an error.
_PATIENCE: Final = 100_000


class SeveralCpus(KernelGuest):
    """The teaching kernel for several CPUs, on `cpus` of them; `seed` decides about their turns.

    `patching` says how the code of the kernel is changed.
    """

    def __init__(
        self,
        isa: Isa,
        *,
        cpus: int,
        seed: int = 0,
        patching: Patching = Patching.STOP_MACHINE,
        image: Path | None = None,
        **options: Any,
    ) -> None:
        super().__init__(isa, image=image or images.kernel(isa, "smp"), **options)
        self.cpu_count = cpus
        self._draw = random.Random(seed)  # noqa: S311
        self._number = words(1)
        """The number of the CPU that runs, for machine code."""
        self.engine.emulated.cpu_number = lambda: self.cpu
        self._cpus = Cpus(self.engine, self.image, self.clock)
        self._giant = self.image.symbol("Giant").value + self.introspection.offset["MTX_LOCK"]
        self._outside.before, self._outside.after = self._settle, self._resume_turn
        self._kept_turn = _ENDLESS
        """The end of the turn, while a call from outside is made."""
        self._calling = False
        self.timers.everywhere = self._on_every_cpu
        self._turn = Turn(until=_ENDLESS)
        self._under_way = False
        """Whether the current CPU's turn has not ended."""
        self._change_text = changes_of(self, self, patching)
        self._watch_turns()
        gates: dict[str, Callable[[int, int, int], int | None]] = {
            "gate_cpu_count": lambda *_: cpus,
            "gate_cpu_start": self._start,
            "gate_ipi": self._interrupt_cpu,
            "gate_interrupts": self._reasons,
            "gate_clock_wait": self._wait_for_clock,
        }
        for name, gate in gates.items():
            self.gates.serve(name, gate)

    def machine_code(self) -> GuestCode:
        """Return the functions by which machine code reads the guest itself."""
        return super().machine_code().joined(cpu_number(address_of(self._number)))

    # -- gates

    def _watch_turns(self) -> None:
        clock, turn = self.clock, self._turn

        def may_end() -> None:
            if not clock.stands_still and clock.now() >= turn.until:
                turn.over = 1
                self.engine.stop()

        watched = Watched(WatchKind.TURN, clock=clock.address, period=clock.period, turn=turn.address)
        address = self.image.symbol("gate_turn").value
        self.engine.code.on_code(address, may_end, watched if clock.period else None)

    def _start(self, number: int, function: int, stack: int) -> None:
        self.soon(partial(self._cpus.start, number, function, stack))
        self._share_turn()

    def _interrupt_cpu(self, number: int, *_: int) -> None:
        cpu = self._cpus.started[number]
        cpu.pending |= Reason.IPI
        if cpu.idle:
            cpu.time = max(cpu.time, self.clock.now())
        self._share_turn()

    def _share_turn(self) -> None:
        """Let the turn end soon, since another CPU has something to do."""
        if self._calling:  # the function runs to its end first
            self._kept_turn = 0
            return
        self._turn.until = min(self._turn.until, self.clock.now() + self._length())
        self.engine.stop()  # to run to the new end

    def _reasons(self, *_: int) -> int:
        cpu = self._cpus.current
        reasons, cpu.pending = cpu.pending, Reason(0)
        return int(reasons)

    def _wait_for_clock(self, address: int, *_: int) -> None:
        self.clock.skip_to(self.engine.load(address, 8))

    def start_clock(self, interval: int) -> None:
        """Send every CPU a clock interrupt every `interval` nanoseconds from now on."""
        super().start_clock(interval)
        self._cpus.current.tick = self.clock.now() + interval

    def other_cpus(self) -> Mapping[int, Any]:
        """Return the registers that are kept of the CPUs whose turn it is not, by number."""
        return {one.number: one.context for one in self._cpus.started if one is not self._cpus.current}

    # -- turns

    def _run(self, deadline: int | None) -> RunState:
        self._interrupted = False
        while self.exit_status is None:
            if not self._under_way and not self._begin_next(deadline):
                return RunState.RUNNING
            reached = deadline is not None and self.clock.now() >= deadline
            if (reached or self._interrupted) and not self.clock.stands_still:
                return RunState.RUNNING
            self._continue(deadline)
        return RunState.FINISHED

    def _begin_next(self, deadline: int | None) -> bool:
        """Begin the next turn; return False if none begins before the deadline."""
        cpu, begins = self._next()
        if cpu is None or (deadline is not None and begins >= deadline):
            if deadline is None:
                raise self.crash("every process waits, and no clock interrupt is scheduled")
            self._pass_idle_time(deadline)
            return False
        self._begin(cpu, begins)
        return True

    def _due(self, cpu: Cpu) -> int | None:
        """Return the time at which a CPU has something to do; None: it waits for another CPU."""
        if not cpu.idle or cpu.pending:
            return self._cpus.time(cpu)
        return cpu.tick

    def _next(self) -> tuple[Cpu | None, int]:
        """Return the CPU whose turn it is, and the time at which it begins."""
        found, first = None, 0
        for cpu in self._cpus.started:
            due = self._due(cpu)
            if due is not None and (found is None or due < first):
                found, first = cpu, due
        return found, first

    def _begin(self, cpu: Cpu, begins: int) -> None:
        """Begin a turn: it ends when the CPU has overtaken the others."""
        self._use(cpu)
        self._under_way = True
        self._turn.over = 0
        if cpu.idle:
            self.clock.skip_to(begins)
            if cpu.tick is None and self._tick is not None:
                cpu.tick = begins + self._tick
        limits = [due for other in self._cpus.started if other is not cpu and (due := self._due(other)) is not None]
        self._turn.until = max(min(limits), self.clock.now()) + self._length() if limits else _ENDLESS

    def _length(self) -> int:
        return self._draw.randint(1, _LONGEST_TURN) * NANOSECONDS // self.clock.rate

    def _use(self, cpu: Cpu, *, looked_at: bool = False) -> None:
        self._cpus.switch(cpu, looked_at=looked_at)
        self.cpu = self._number[0] = cpu.number

    def _continue(self, deadline: int | None) -> None:
        """Let the CPU run to the end of its turn, or to the deadline."""
        cpu = self._cpus.current
        self._take_interrupts(cpu)
        tick = _ENDLESS if cpu.tick is None else cpu.tick
        self._next_tick = 0 if cpu.pending else min(tick, self._turn.until)
        self._advance(deadline)
        cpu.idle, self._idle = self._idle, False
        if cpu.idle and cpu.number:
            cpu.tick = None
        ended = self.clock.now() >= self._turn.until and self._in_user_mode()
        if cpu.idle or self._turn.over or (ended and not self.clock.stands_still):
            self._under_way = False

    def _take_interrupts(self, cpu: Cpu) -> None:
        """Deliver an interrupt, if one has come and the CPU is in user mode or waits."""
        if cpu.tick is not None and self.clock.now() >= cpu.tick and (cpu.idle or self._in_user_mode()):
            cpu.pending |= Reason.CLOCK
            cpu.tick = self.clock.now() + (self._tick or 0)
        if cpu.pending and (cpu.idle or self._in_user_mode()):
            self.engine.interrupt()
        cpu.idle = False

    def _in_user_mode(self) -> bool:
        return not self.isa.is_kernel_address(self.engine.pc)

    def _pass_idle_time(self, deadline: int) -> None:
        """Let the time of CPUs that wait pass."""
        for cpu in self._cpus.started:
            if cpu.idle:
                cpu.time = max(cpu.time, deadline)
        if self._cpus.current.idle:
            self.clock.skip_to(deadline)

    def _on_every_cpu(self, action: Callable[[], object]) -> None:
        """Do something on each CPU in turn, between two runs."""
        here, now = self._cpus.current, self.clock.now()
        for cpu in self._cpus.started:
            before = cpu.time, cpu.clock
            self._use(cpu, looked_at=True)
            if cpu.idle:
                self.clock.skip_to(now)
            action()
            self._use(here, looked_at=True)
            if cpu.idle and cpu is not here:  # an interrupt may still wake it up earlier
                cpu.time, cpu.clock = before

    # -- changes of code

    def change_text(self, change: Callable[[], object], continues: int) -> None:
        """Change the kernel's code, which continues at an address then, by the method of patching."""
        if self.exit_status is not None:
            change()
        else:
            self.soon(partial(self._change_text, change, continues))

    def call_beside(self, name: str, *arguments: int) -> None:
        """Let this CPU call a function of the kernel, while all CPUs run; between two runs.

        It takes time on all of them.  Afterwards this CPU is where it was.
        """
        cpu, context = self._cpus.current, self.engine.cpu.new_context()
        idle, cpu.idle = cpu.idle, False
        self._outside.enter(name, *arguments)
        self._under_way, self._turn.over = True, 0
        while self.exit_status is None and not self._outside.returned:
            if not self._under_way:
                self._begin_next(None)
            self._continue(None)
        self.engine.cpu.restore(context)
        cpu.idle, self._under_way = idle, not idle

    # -- calls from outside

    def _settle(self) -> None:
        """Let the CPU that holds the big lock run until it has given it back.

        A function that is called from outside must not meet another CPU in the kernel.
        """
        here = self._cpus.current
        for _ in range(_PATIENCE):
            owner = self.engine.load(self._giant, self.isa.word) & ~1
            holder = next((cpu for cpu in self._cpus.started if owner and self._thread_of(cpu) == owner), here)
            if holder is here:
                break
            self._use(holder)
            self._outside.running = True
            try:
                self.engine.run(None, self.engine.instructions + _MORE)
            except GuestCrashError as error:
                raise self.crash(str(error)) from None
            finally:
                self._outside.running = False
                self._use(here)
        else:
            raise self.crash("a CPU does not give the big lock back")
        self._calling, self._kept_turn = True, self._turn.until
        self._turn.until = _ENDLESS

    def _resume_turn(self) -> None:
        """Go on with the turn after a call from outside; it ends soon if that has woken a CPU up."""
        self._calling, self._turn.until = False, self._kept_turn

    def _thread_of(self, cpu: Cpu) -> int:
        return self._cpus.word(cpu, self.introspection.current)
