"""Kernel and user stacks for actions and variables.

On a machine the walk starts inside DTrace, and a probe's `aframes` artificial frames are skipped.
The emulator has no such frames: the guest returns the stack of the interrupted context itself.  The
result of stack() is the same on every ISA:

* in an anchored probe, the caller of the function that was hit, then its callers: the pc of the
  probe's site is omitted, because `probefunc` names its function;
* in any other, such as profile's, first arg0, which is the interrupted pc, then the callers of the
  interrupted context.

`stackdepth` is the number of these frames.

Source: FreeBSD sys/cddl/dev/dtrace/<machine>/dtrace_isa.c; dtrace.c (DTRACE_ANCHORED).
"""

from __future__ import annotations

from collections.abc import Sequence

from trapline.framework.base.context import Context
from trapline.framework.base.world import World


def kernel_frames(world: World, ctx: Context) -> Sequence[int]:
    """Return the kernel pcs that stack() records."""
    frames = world.guest.kernel_stack()
    if ctx.probe.function:
        return frames[1:]
    pc = ctx.args[0]
    if not pc:
        return frames
    return [pc, *(frames[1:] if frames and frames[0] == pc else frames)]


def caller(world: World, ctx: Context) -> int:
    """Return `caller`: of the function that was hit, or of the interrupted function.

    0: unknown.
    """
    frames = kernel_frames(world, ctx)
    place = 0 if ctx.probe.function else 1
    return frames[place] if len(frames) > place else 0


def user_caller(world: World) -> int:
    """Return `ucaller`."""
    frames = user_frames(world)
    return frames[1] if len(frames) > 1 else 0


def user_frames(world: World) -> Sequence[int]:
    """Return the user pcs that ustack() records."""
    return world.guest.user_stack()


def begins_function(world: World, pc: int) -> bool:
    """Return whether a pc of the current process is the first instruction of a function."""
    located = world.guest.locate_user(pc)
    return located is not None and bool(located.symbol) and not located.offset


def user_depth(world: World) -> int:
    """Return ustackdepth."""
    return len(world.guest.user_stack()) if world.guest.isa.calling.user_depth else 0
