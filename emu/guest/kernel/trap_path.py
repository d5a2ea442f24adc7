"""The two trap paths of the kernel guest; the clock is stopped on both.

A run uses one of two trap paths (`TrapPath`), with equal results.  At a breakpoint in kernel text:

* HOST: the emulator calls the handlers itself and executes the displaced instruction's plan;
* GUEST: the CPU takes the exception into the kernel's own vector, whose code saves a trap frame,
  calls the gate `dtrace_invop`, and emulates the instruction itself, as FreeBSD's dtrace_asm.S and
  dtrace_subr.c do.

A probe takes no virtual time, so a traced run has the same times as an untraced one.  The host path
needs nothing for this.  On the guest path the clock stops at the breakpoint and starts again at the
return instruction of the vector (`dtrace_invop_return`), which is counted in place of the
breakpoint.  A breakpoint that is not a probe's takes time like any other trap: the gate that finds
this out starts the clock.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from emu.displaced.decision import DisplacedTable
from emu.engine.handlers import WrappedTaker
from emu.engine.state import DELIVER, HANDLED
from emu.engine.time.clock import VirtualClock
from emu.guest.kernel.panic import KernelPanicError
from emu.guest.kernel.view import KernelView
from emu.probe.hit_cache import Rest
from emu.probe.host_trap import HostTrap
from emu.probe.trap_frames import SavedFrame
from emu.support.words import BadAddressError


class TrapPath(Enum):
    """The handler of breakpoints in kernel text."""

    HOST = "host"
    GUEST = "guest"


class UserTraps(Protocol):
    """Takes the traps of user mode (`emu.guest.kernel.user.programs`)."""

    def breakpoint(self, address: int) -> int:
        """Take a breakpoint; answer as `TrapTaker.breakpoint` does."""
        ...

    def rest(self, address: int) -> Rest | None:
        """Return the function that completes a hit after machine code."""
        ...

    def exception(self, number: int) -> bool:
        """Take an exception; False: it is not one of a displaced instruction."""
        ...


class Trapped(Protocol):
    """The interface of the guest for a trap (`emu.guest.kernel.guest`)."""

    @property
    def userland(self) -> UserTraps:
        """The user programs."""
        ...

    def time_goes_on(self, instructions: int) -> None:
        """Note that the clock runs again after a probe to which these instructions still belong."""
        ...

    def crash(self, reason: str) -> KernelPanicError:
        """Return the error of a guest that cannot continue."""
        ...


class KernelTraps(HostTrap):
    """Takes the exceptions of one kernel guest.

    `table` replaces the ISA's table of displaced instructions.
    """

    takes_user_breakpoints = True

    def __init__(self, guest: KernelView, host: Trapped, path: TrapPath, table: DisplacedTable | None) -> None:
        super().__init__(guest.engine, guest.traps, guest.patcher, lowest=guest.isa.kernel_start, table=table)
        self._guest = guest
        self._host = host
        self._clock = guest.clock
        self._isa = guest.isa
        self._path = path
        self._pc_after = guest.isa.traps.pc_after
        self.probe_taken = False
        """Whether a probe of user mode has been taken, and its thread is not back in user mode."""
        if path is TrapPath.HOST:
            self.attach()
        else:
            self._engine.handlers.taker = VectorPath(self, self._clock)
        # The return instruction itself still belongs to the probe, and is counted as the displaced one.
        self._engine.code.on_code(guest.image.symbol("dtrace_invop_return").value, lambda: self._resume(1))

    # -- breakpoints

    def user_breakpoint(self, address: int) -> int:
        """Take a breakpoint of user mode on the host path."""
        return self._host.userland.breakpoint(address)

    def user_rest(self, address: int) -> Rest | None:
        """Return the function that completes a hit of user mode after machine code."""
        return self._host.userland.rest(address)

    def invop(self, address: int, frame: int, extra: int) -> int:
        """Implement the gate `dtrace_invop`, called at a breakpoint in the kernel's text."""
        rval = self._guest.traps.invop(address, SavedFrame(self._engine, frame, self._pc_after), extra)
        if not rval:
            self._resume()  # not a probe: its handling takes time like that of any trap
        return rval

    def user_probe(self, *, claimed: bool) -> None:
        """Note that the vector has reported a breakpoint of user mode, and whether it is a probe's."""
        if not claimed:
            self._clock.resume()
        else:
            self.probe_taken = True
            self._engine.running.stop_in_user_mode()

    def leave_probe(self) -> None:
        """Start the clock, if user mode has returned from a probe."""
        if self.probe_taken:
            self.probe_taken = False
            self._clock.resume()

    def _resume(self, extra: int = 0) -> None:
        """Start the clock after a trap, unless the clock was stopped before the trap."""
        if not self._guest.traced.inside:
            self._clock.resume(extra)
            self._host.time_goes_on(extra)

    # -- other exceptions

    def trap(self, number: int) -> int:
        """Take another exception: of a probe, or for the guest's own vector."""
        if self._isa.is_kernel_address(self._engine.pc):
            return self._invalid_opcode(number) if self._guest.probe_calls else DELIVER
        self.leave_probe()
        return HANDLED if self._host.userland.exception(number) else DELIVER

    def _invalid_opcode(self, number: int) -> int:
        """Take illumos's LOCK NOP as the breakpoint that it is.

        The guest's own vector decides about anything else.
        """
        pc, engine = self._engine.pc, self._engine
        if number != self._isa.unicorn.undefined or pc < self._isa.kernel_start:
            return DELIVER
        engine.discount(-1)  # the engine has not counted it; a breakpoint counts as the instruction that it displaces
        if self._path is TrapPath.GUEST:
            self._clock.pause()
            return DELIVER
        answer = self.take(pc)
        if answer == DELIVER:
            engine.discount(1)
        return answer

    def faulted(self, address: int, error: BadAddressError) -> int:  # noqa: ARG002  the error has the address
        """Crash the guest.  Raises `KernelPanicError`."""
        raise self._host.crash(f"the displaced instruction cannot reach {error.address:#x}") from None


class VectorPath(WrappedTaker):
    """The trap path GUEST: the CPU takes breakpoints into the kernel's vector.

    The clock is stopped until one is handled.
    """

    def __init__(self, inner: KernelTraps, clock: VirtualClock) -> None:
        super().__init__(inner)
        self._clock = clock

    def breakpoint(self, address: int) -> int:  # noqa: ARG002  the CPU has it
        """Leave a breakpoint to the CPU."""
        self._clock.pause()
        return DELIVER
