"""Calls from outside: between two runs, the emulator makes the kernel run one of its own functions.

A debugger of a real system asks the kernel to do such things by ptrace; here its functions are
called: proc_rwmem_page, vm_fault, kern_psignal.  They take no virtual time, and leave the CPU as it
was.  A gate or a trap cannot call them, because the kernel is then executing other code: it ends
the run, and the call is made before the next run (`soon`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.elf.image import Image
from emu.engine.engine import Engine
from emu.engine.errors import GuestCrashError
from emu.engine.time.clock import VirtualClock
from emu.guest.kernel.introspection import Introspection
from emu.guest.kernel.panic import KernelPanicError
from emu.probe.arguments import pass_arguments

# Bytes below the kernel's stack pointer that a call leaves alone: compilers keep values there.
_RED_ZONE: Final = 256
# Words on the stack, if a call puts its return address there: that address, and room for arguments.
_CALL_WORDS: Final = 5
# The functions that the vector of interrupts calls, in the kernels of one CPU and of several.
_INTERRUPT: Final = ("hardclock", "__wrap_hardclock")


class OutsideCalls:
    """Runs functions of one kernel; `crash` makes the error of a guest that cannot continue."""

    def __init__(
        self,
        engine: Engine,
        image: Image,
        introspection: Introspection,
        clock: VirtualClock,
        crash: Callable[[str], KernelPanicError],
    ) -> None:
        self._engine = engine
        self._image = image
        self._introspection = introspection
        self._clock = clock
        self._crash = crash
        self._back = image.symbol("gate_call_return").value
        self._result = engine.isa.registers.slots[engine.isa.calling.results[0]]
        self._actions: list[Callable[[], object]] = []
        self.running = False
        """Whether the guest runs, so that nothing can be called."""
        self.before: Callable[[], object] = lambda: None
        """Is called before each call."""
        self.after: Callable[[], object] = lambda: None
        """Is called after it."""
        self.returned = False
        """Whether the function that was entered has returned."""
        self._leaving = False
        engine.code.on_code(self._back, self._has_returned)
        for function in image.functions:
            if function.name in _INTERRUPT:
                engine.code.on_code(function.value, self._has_left)

    def call(self, name: str, *arguments: int) -> int:
        """Make the kernel run one of its functions, and return its result.

        Raises RuntimeError while the guest runs, `KernelPanicError` if the function panics.
        """
        engine = self._engine
        if self.running:
            raise RuntimeError(f"{name}: the guest is running")
        with engine.counter.aside():
            return self._call(name, *arguments)

    def _call(self, name: str, *arguments: int) -> int:
        engine = self._engine
        self.before()
        context, before, time = engine.cpu.new_context(), engine.instructions, self._clock.state()
        self.enter(name, *arguments)
        try:
            engine.run()
        except GuestCrashError as error:
            raise self._crash(str(error)) from None
        finally:
            self.after()
        result = engine.words[self._result]
        executed = engine.instructions - before
        engine.cpu.restore(context)
        engine.discount(executed)
        self._clock.set_state(time)
        return result

    def enter(self, name: str, *arguments: int) -> None:
        """Let the CPU begin a function of the kernel; the run ends when it has `returned`."""
        engine, self.returned = self._engine, False
        if not engine.isa.is_kernel_address(engine.pc):
            self._leave_user_mode()
        engine.words[engine.isa.registers.slots[engine.isa.registers.sp]] = self._stack()
        self._return_to_gate()
        pass_arguments(engine, arguments)
        engine.pc = self._image.symbol(name).value

    def _leave_user_mode(self) -> None:
        """Let the CPU take an interrupt, until the vector has done its part.

        A breakpoint in the function that is called would otherwise be taken for the program's:
        RISC-V's vector tells the two by a register that it sets itself.
        """
        self._leaving = True
        self._engine.interrupt()
        self._engine.run()

    def _has_left(self) -> None:
        if self._leaving:
            self._leaving = False
            self._engine.stop()

    def _has_returned(self) -> None:
        self.returned = True
        self._engine.stop()

    def _stack(self) -> int:
        """Return a stack pointer on the current thread's kernel stack, below what is in use."""
        engine, offset = self._engine, self._introspection.offset
        size = self._introspection.thread_field("TD_KSTACK_SIZE")
        top = self._introspection.thread_field("TD_KSTACK") + size
        low = engine.words[engine.isa.registers.slots[engine.isa.registers.sp]]
        if not 0 <= top - low <= size:
            # The vector has not switched stacks yet; it will put the trap frame of user mode here.
            low = top - offset["TF_SIZE"]
        return (low - _RED_ZONE) & ~0xF

    def _return_to_gate(self) -> None:
        """Make the function return to `gate_call_return`, where the engine stops."""
        engine, registers = self._engine, self._engine.isa.registers
        if registers.link is not None:
            engine.words[registers.slots[registers.link]] = self._back
            return
        sp = registers.slots[registers.sp]
        # Every word, not only the first: the gate's own return instruction is executed too, and needs a valid target.
        for _ in range(_CALL_WORDS):
            engine.words[sp] -= engine.isa.word
            engine.store(engine.words[sp], engine.isa.word, self._back)

    def soon(self, action: Callable[[], object]) -> None:
        """Call a function between two runs: now, or before the guest executes its next block."""
        if not self.running:
            action()
            return
        self._actions.append(action)
        self._engine.stop()

    def do_actions(self) -> None:
        """Do the actions that were requested during the run, in order; they may request others."""
        while self._actions:
            self._actions.pop(0)()
