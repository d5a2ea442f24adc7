"""System calls about handling signals.  Source: Linux kernel/signal.c."""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.calls.kernel.clock import timespec
from emu.guest.linux.calls.table import Address, Blocking, Caller, Int, Size, call
from emu.guest.linux.errno import EAGAIN, EINTR, EINVAL, ENOMEM, EPERM, LinuxError
from emu.guest.linux.process.process import NOTHING, Wait
from emu.isa.linux_signals import LAST, UNBLOCKABLE, Signal

_BLOCK, _UNBLOCK, _SETMASK = range(3)
_SS_DISABLE: Final = 2
_SS_AUTODISARM: Final = 1 << 31
_SMALLEST_STACK: Final = 2048
_SECOND: Final = 1_000_000_000
# stack_t by the bytes of a word.
_STACK: Final = {8: struct.Struct("<QixxxxQ"), 4: struct.Struct("<IiI")}


@call("rt_sigaction")
def rt_sigaction(c: Caller, number: Int, new: Address, old: Address, size: Size) -> int:
    """Set or return the action of a signal."""
    if not 1 <= number <= LAST or size != 8:
        raise LinuxError(EINVAL)
    action = c.process.signals.actions[number]
    restorer = c.kernel.abi.action_has_restorer
    form = ("<QQQQ" if restorer else "<QQQ") if c.word == 8 else "<IIIQ"
    if old:
        fields = (action.handler, action.flags, *((action.restorer,) if restorer else ()), action.mask)
        saved = struct.pack(form, *fields)
    if new:
        if number in {Signal.SIGKILL, Signal.SIGSTOP}:
            raise LinuxError(EINVAL)
        values = struct.unpack(form, c.read(new, struct.calcsize(form)))
        action.handler, action.flags, action.mask = values[0], values[1], values[-1] & ~UNBLOCKABLE
        action.restorer = values[2] if restorer else 0
    if old:
        c.write(old, saved)
    return 0


@call("rt_sigprocmask")
def rt_sigprocmask(c: Caller, how: Int, new: Address, old: Address, size: Size) -> int:
    """Set or return the blocked signals."""
    if size != 8:
        raise LinuxError(EINVAL)
    before = c.thread.mask
    if new:
        bits = c.number(new)
        masks = {_BLOCK: before | bits, _UNBLOCK: before & ~bits, _SETMASK: bits}
        if how not in masks:
            raise LinuxError(EINVAL)
        c.thread.mask = masks[how] & ~UNBLOCKABLE
    if old:
        c.write(old, struct.pack("<Q", before))
    return 0


@call("rt_sigpending")
def rt_sigpending(c: Caller, to: Address, size: Size) -> int:
    """Report which signals wait."""
    bits = 0
    for queue in (c.thread.pending, c.process.pending):
        for info in queue:
            bits |= 1 << info.number - 1
    c.write(to, struct.pack("<Q", bits & c.thread.mask)[:size])
    return 0


@call("rt_sigsuspend")
def rt_sigsuspend(c: Caller, mask: Address, size: Size) -> Blocking:
    """Wait for a signal with another mask."""
    if size != 8:
        raise LinuxError(EINVAL)
    c.thread.saved_mask = c.thread.mask
    c.thread.mask = c.number(mask) & ~UNBLOCKABLE
    yield Wait(key=NOTHING)
    return -EINTR


@call("rt_sigtimedwait")
def rt_sigtimedwait(c: Caller, wanted: Address, info: Address, timeout: Address, size: Size) -> Blocking:
    """Take a signal that waits, or wait for one."""
    if size != 8:
        raise LinuxError(EINVAL)
    bits = c.number(wanted) & ~UNBLOCKABLE
    deadline = None
    if timeout:
        seconds, nanoseconds = timespec(c, timeout)
        deadline = c.now() + seconds * _SECOND + nanoseconds

    def there() -> bool:
        return any(bits >> one.number - 1 & 1 for queue in (c.thread.pending, c.process.pending) for one in queue)

    if not there() and not (yield Wait(there, deadline)):
        raise LinuxError(EAGAIN)
    taken = c.kernel.delivery.take(c.thread, bits)
    assert taken is not None
    if info:
        c.write(info, taken.pack(c.word))
    return taken.number


@call("rt_sigreturn")
def rt_sigreturn(c: Caller) -> None:
    """Go back to what a signal interrupted."""
    c.kernel.delivery.leave(c.thread)


@call("sigaltstack")
def sigaltstack(c: Caller, new: Address, old: Address) -> int:
    """Set or tell the stack for signals."""
    stack = c.thread.stack
    sp = c.kernel.engine.read_register(c.kernel.isa.registers.sp)
    on_it = bool(stack.size) and stack.address <= sp < stack.address + stack.size
    form = _STACK[c.word]
    told = form.pack(stack.address, _SS_DISABLE if not stack.size else int(on_it), stack.size)
    if new:
        if on_it:
            raise LinuxError(EPERM)
        address, flags, size = form.unpack(c.read(new, form.size))
        flags &= ~_SS_AUTODISARM & 0xFFFF_FFFF
        if flags not in {0, 1, _SS_DISABLE}:
            raise LinuxError(EINVAL)
        if flags == _SS_DISABLE:
            stack.address = stack.size = 0
        elif size < _SMALLEST_STACK:
            raise LinuxError(ENOMEM)
        else:
            stack.address, stack.size = address, size
    if old:
        c.write(old, told)
    return 0
