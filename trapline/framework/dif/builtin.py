"""The built-in variables of D, one method each.

Source: FreeBSD dtrace.c dtrace_dif_variable(), sys/cddl/dev/dtrace/<machine>/dtrace_isa.c
dtrace_getarg(), dtrace_getreg().
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.displaced.frame import NamedRegisters
from emu.native.guest import LateArguments
from emu.support.words import WORD_MASK, BadAddressError
from trapline.framework.base.context import UNREAD, Context
from trapline.framework.base.dif import Var
from trapline.framework.base.faults import BADADDR, ILLOP
from trapline.framework.base.stacks import caller, kernel_frames, user_caller, user_depth
from trapline.framework.dif.operations import Operations

# Name of the jail of all processes outside jails (FreeBSD kern_jail.c prison0); its number is 0.
HOST_JAIL: Final = "0"
_INT_MAX: Final = 0x7FFF_FFFF

Reader = Callable[[Context], int]


class Builtins:
    """The built-in variables, read through one consumer's operations."""

    def __init__(self, operations: Operations) -> None:
        world = operations.world
        guest, memory = world.guest, world.memory
        thread = operations.thread
        self._operations = operations
        self._world = world
        self.scalars: dict[int, Reader] = {
            Var.CURTHREAD: lambda ctx: thread(ctx).address,
            Var.TIMESTAMP: self._timestamp,
            Var.VTIMESTAMP: self._vtimestamp,
            Var.EPID: lambda ctx: ctx.epid,
            Var.ID: lambda ctx: ctx.probe.id,
            Var.STACKDEPTH: lambda ctx: len(kernel_frames(world, ctx)),
            Var.CALLER: lambda ctx: caller(world, ctx),
            Var.PROBEPROV: lambda ctx: memory.intern(ctx.probe.provider.name),
            Var.PROBEMOD: lambda ctx: memory.intern(ctx.probe.module),
            Var.PROBEFUNC: lambda ctx: memory.intern(ctx.probe.function),
            Var.PROBENAME: lambda ctx: memory.intern(ctx.probe.name),
            Var.PID: lambda ctx: thread(ctx).pid & WORD_MASK,
            Var.TID: lambda ctx: thread(ctx).tid & WORD_MASK,
            Var.EXECNAME: lambda ctx: memory.intern(thread(ctx).execname),
            Var.ZONENAME: lambda _ctx: memory.intern(HOST_JAIL),
            Var.WALLTIMESTAMP: self._walltimestamp,
            Var.USTACKDEPTH: lambda _ctx: user_depth(world),
            Var.UCALLER: lambda _ctx: user_caller(world),
            Var.PPID: self._ppid,
            Var.UID: lambda ctx: thread(ctx).uid & WORD_MASK,
            Var.GID: lambda ctx: thread(ctx).gid & WORD_MASK,
            Var.ERRNO: lambda ctx: thread(ctx).errno & WORD_MASK,
            Var.EXECARGS: self._execargs,
            Var.JID: lambda _ctx: 0,
            Var.JAILNAME: lambda _ctx: memory.intern(HOST_JAIL),
            Var.CPU: lambda _ctx: guest.cpu,
            Var.IPL: self._interrupt_level,
        }
        """Scalars by number."""
        self._arrays: dict[int, Callable[[Context, int], int]] = {
            Var.ARGS: self.argument,
            Var.REGS: lambda _ctx, index: self._register(world.core.trapframe, index),
            Var.UREGS: self._user_register,
        }
        for number in range(Var.ARG0, Var.ARG9 + 1):
            self.scalars[number] = self._argument_reader(number - Var.ARG0)
        for number in self._arrays:
            self.scalars[number] = self._first_reader(number)

    def _argument_reader(self, index: int) -> Reader:
        return lambda ctx: self.argument(ctx, index)

    def _first_reader(self, number: int) -> Reader:
        return lambda ctx: self._arrays[number](ctx, 0)

    def scalar(self, ctx: Context, number: int) -> int:
        """Read a built-in scalar (LDGS); an unknown one is an illegal operation."""
        reader = self.scalars.get(number)
        return self.unknown(ctx) if reader is None else reader(ctx)

    def unknown(self, _ctx: Context) -> int:
        """Fault: there is no such variable."""
        self._world.core.flags |= ILLOP
        return 0

    def element(self, ctx: Context, number: int, index: int) -> int:
        """Read an element of a built-in array (LDGA)."""
        array = self._arrays.get(number)
        return self.unknown(ctx) if array is None else array(ctx, index)

    def argument(self, ctx: Context, index: int) -> int:
        """Read a probe argument; its provider or the trap frame supplies those not passed."""
        if index < len(ctx.args):
            return ctx.args[index]
        index &= _INT_MAX
        probe = ctx.probe
        if probe.provider.late_arguments(probe.id, probe.arg) is LateArguments.NONE:
            return 0
        try:
            value = probe.provider.argument_value(probe.id, probe.arg, index)
            if value is None:
                frame = self._world.core.trapframe
                value = frame.argument(index) if frame is not None else 0
        except BadAddressError as error:
            self._world.memory.fault(BADADDR, error.address)
            return 0
        return value & WORD_MASK

    def _timestamp(self, ctx: Context) -> int:
        if ctx.timestamp == UNREAD:
            ctx.timestamp = self._world.guest.now()
        return ctx.timestamp

    def _walltimestamp(self, ctx: Context) -> int:
        if ctx.walltimestamp == UNREAD:
            ctx.walltimestamp = self._world.guest.wall()
        return ctx.walltimestamp

    def _vtimestamp(self, _ctx: Context) -> int:
        clock = self._world.abilities.thread_time
        return clock() if clock is not None else 0

    def _interrupt_level(self, ctx: Context) -> int:
        """Read ipl: an illegal operation if the guest has no such level, as FreeBSD has none."""
        level = self._world.abilities.interrupt_level
        return self.unknown(ctx) if level is None else level()

    def _ppid(self, ctx: Context) -> int:
        thread = self._operations.thread(ctx)
        return (thread.ppid if thread.pid else thread.pid) & WORD_MASK

    def _execargs(self, ctx: Context) -> int:
        """Copy the arguments to scratch space, with blanks between them.

        It is NULL for a process without any.
        """
        text = self._operations.thread(ctx).execargs.removesuffix("\0").replace("\0", " ")
        if not text:
            return 0
        data = text.encode("utf-8", "surrogateescape") + b"\0"
        address = self._operations.reserve(ctx, len(data))
        if address is None:
            return 0
        self._world.memory.write(address, data)
        return address

    def _user_register(self, _ctx: Context, index: int) -> int:
        user_frame = self._world.abilities.user_frame
        return self._register(user_frame() if user_frame is not None else None, index)

    def _register(self, frame: NamedRegisters | None, index: int) -> int:
        """Read regs[index]; a register that the frame does not have is 0."""
        if frame is None:
            self._world.memory.fault(BADADDR, 0)
            return 0
        names = self._world.guest.isa.registers.dtrace
        if index >= len(names):
            self._world.core.flags |= ILLOP
            return 0
        try:
            return frame.register(names[index])
        except KeyError:
            return 0
