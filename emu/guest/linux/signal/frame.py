"""The frames of signals: a kernel puts one on the stack before a handler, and takes it off later.

A frame holds all that a program sees of its registers, and a handler may change it.  The rest of
the CPU's state is kept beside the process until the handler returns.

Source: Linux arch/*/kernel/signal.c.
"""

from __future__ import annotations

import struct
from functools import cached_property
from typing import Any, Final

from emu.engine.engine import Engine
from emu.guest.linux.process.process import Thread
from emu.isa.linux_signals import SIGINFO_SIZE, SignalInfo
from emu.support.words import BadAddressError

# uc_stack by the bytes of a word.
_STACK: Final = {8: struct.Struct("<QixxxxQ"), 4: struct.Struct("<IiI")}
_WORD: Final = {8: "<Q", 4: "<I"}
_DISABLED: Final = 2
_KEPT: Final = 64
# The alignment of floating-point registers that lie above a frame, and of the frame.
_AREA_ALIGNMENT, _ALIGNMENT = 64, 16


class _StateCpu:
    """The CPU of an engine, whose vector registers are located once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.read_register, self.write_register = engine.read_register, engine.write_register

    @cached_property
    def _files(self) -> tuple[Any, ...]:
        return self._engine.cpu.vectors()

    def vectors(self) -> tuple[Any, ...]:
        """Return the bytes of each file of vector registers, which can be assigned."""
        return self._files


class SignalFrames:
    """Writes and reads the frames of one CPU."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._isa = engine.isa
        self._layout = engine.isa.linux.frame
        self._word = _WORD[engine.isa.word]
        self._cpu = _StateCpu(engine)

    def arguments(self, frame: int, info: SignalInfo) -> tuple[int, int, int]:
        """Return a handler's arguments: the signal, the addresses of its siginfo and ucontext."""
        return info.number, frame + self._layout.siginfo, frame + self._layout.ucontext

    def push(self, thread: Thread, info: SignalInfo, restorer: int, *, alternate: bool) -> int:
        """Put a frame on the stack; return its address.

        `alternate`: it is the alternate stack, if the thread has one.  Raises `BadAddressError`:
        the stack is too small.
        """
        engine, layout, state = self._engine, self._layout, self._layout.state
        stack, sp = thread.stack, engine.read_register(self._isa.registers.sp)
        on_stack = stack.address <= sp < stack.address + stack.size
        top = sp - self._isa.linux.red_zone
        if alternate and stack.size and not on_stack:
            top = (stack.address + stack.size) & self._isa.address_mask
        saved = self._saved(thread)
        if state.at is None:
            top = ((top - len(saved) + state.unaligned) & -_AREA_ALIGNMENT) - state.unaligned
        frame = (top - layout.size) & -_ALIGNMENT
        if layout.return_address is not None:
            frame -= self._isa.word  # as on entry to a function, where the return address was pushed
        if frame < 0:  # a stack pointer at the bottom of the address space
            raise BadAddressError(frame)
        data = bytearray(layout.size)
        data[layout.siginfo : layout.siginfo + SIGINFO_SIZE] = info.pack(self._isa.word)
        flags = _DISABLED if not stack.size else int(on_stack)
        _STACK[self._isa.word].pack_into(data, layout.stack, stack.address, flags, stack.size)
        struct.pack_into("<Q", data, layout.mask, thread.mask if thread.saved_mask is None else thread.saved_mask)
        for offset, value in self._words(thread, restorer, self.arguments(frame, info)).items():
            struct.pack_into(self._word, data, offset, value)
        for name, offset, size in layout.shown:
            data[offset : offset + size] = engine.read_register(name).to_bytes(size, "little")
        if state.at is None:
            struct.pack_into(self._word, data, state.pointer, top)
            engine.memory.write(top, saved)
        else:
            data[state.at : state.at + len(saved)] = saved
        engine.memory.write(frame, bytes(data))
        self._keep(thread, frame)
        if state.reset is not None:
            state.reset(self._cpu)
        return frame

    def _saved(self, thread: Thread) -> bytes:
        """Return the floating-point and vector registers as frames hold them."""
        accruing = self._isa.unicorn.accruing
        if accruing is not None and self._engine.cpu.env:
            accruing.merge(self._engine.cpu.env)
        return self._layout.state.save(self._cpu, thread.trap.error)

    def _words(self, thread: Thread, restorer: int, arguments: tuple[int, ...]) -> dict[int, int]:
        """Return the words of a frame, by their offsets."""
        engine, layout, registers = self._engine, self._layout, self._isa.registers
        mask = self._isa.address_mask
        words = dict(layout.words)
        words |= {offset: engine.read_register(name) & mask for name, offset in layout.registers.items()}
        words |= {offset: getattr(thread.trap, name) & mask for name, offset in layout.trap.items()}
        words |= zip(layout.arguments, arguments, strict=False)
        if layout.return_address is not None:
            words[layout.return_address] = restorer
        if layout.record is not None:
            words[layout.record] = engine.read_register(registers.fp)
            words[layout.record + self._isa.word] = engine.read_register(registers.link or "")
        return words

    def _keep(self, thread: Thread, frame: int) -> None:
        """Keep the rest of the CPU's state until the handler returns."""
        frames = thread.process.frames
        frames[frame] = self._engine.cpu.new_context()
        if len(frames) > _KEPT:  # handlers that were left by longjmp never give theirs back
            del frames[next(iter(frames))]

    def pop(self, thread: Thread, frame: int) -> int:
        """Load the registers from a frame; return the mask of signals.  Raises `BadAddressError`."""
        engine, abi, layout = self._engine, self._isa.linux, self._layout
        data = engine.memory.read(frame, layout.size)
        context = thread.process.frames.pop(frame, None)
        if context is not None:
            tls = engine.read_register(abi.tls)
            engine.cpu.restore(context)
            if abi.tls not in layout.registers:
                engine.write_register(abi.tls, tls)
        for name, offset in layout.registers.items():
            engine.write_register(name, int.from_bytes(data[offset : offset + abi.word], "little"))
        self._load(data)
        return int(struct.unpack_from("<Q", data, layout.mask)[0])

    def _load(self, data: bytes) -> None:
        """Load the floating-point and vector registers.  Raises `BadAddressError`."""
        state = self._layout.state
        if state.at is not None:
            state.load(self._cpu, data[state.at : state.at + state.size])
            return
        (address,) = struct.unpack_from(self._word, data, state.pointer)
        if address:
            state.load(self._cpu, self._engine.memory.read(address, state.size))
        elif state.reset is not None:
            state.reset(self._cpu)
