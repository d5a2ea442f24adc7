"""System calls: from the registers to a function and back, at once or after a wait."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import ParamSpec, TypeAlias, TypeVar

from emu.engine.engine import Engine
from emu.guest.linux.errno import EFAULT, EINTR, ENOMEM, ENOSYS, LinuxError
from emu.guest.linux.mm.page_frames import OutOfMemoryError
from emu.guest.linux.process.pid_table import Tasks
from emu.guest.linux.process.process import InterruptedBySignalError, Life, SystemCall, Thread
from emu.guest.linux.sched.core import Schedule
from emu.guest.linux.signal.deliver import Delivery
from emu.guest.linux.signal.pending_signals import has_signal
from emu.support.words import BadAddressError

Given = ParamSpec("Given")
Result = TypeVar("Result")
# A system call of one kernel, given the thread and the argument registers.  It returns the result, or the generator of
# a call that may block; None leaves the registers as they are.
ServedCall: TypeAlias = Callable[[Thread, list[int]], "int | SystemCall | None"]


class Serving:
    """Serves the system calls of one kernel from a table of functions by name.

    `report` is called once for each call that is not in the table.
    """

    def __init__(
        self,
        engine: Engine,
        tasks: Tasks,
        schedule: Schedule,
        delivery: Delivery,
        calls: Mapping[str, ServedCall],
        report: Callable[[str], object],
    ) -> None:
        self._isa = engine.isa
        abi, slots = self._isa.linux, self._isa.registers.slots
        self._tasks = tasks
        self._schedule = schedule
        self._delivery = delivery
        self._calls = calls
        self._report = report
        self._reported: set[str] = set()
        self._handlers: dict[int, tuple[str, ServedCall | None]] = {}
        self._words = engine.words
        self._call_number, self._number_mask = slots[abi.call_number], abi.call_number_mask
        self._overwritten = [(slots[name], source) for name, source in abi.call_overwrites.items()]
        self._read_register = engine.read_register
        self._arguments = [slots[name] for name in self._isa.calling.system_call_arguments]
        self._result = slots[abi.call_result]

    def serve(self, thread: Thread) -> None:
        """Serve the system call that the current thread has made."""
        words = self._words
        number = int(words[self._call_number])
        arguments = [int(words[slot]) for slot in self._arguments]
        thread.restart = (number, arguments[0])
        for slot, source in self._overwritten:
            words[slot] = self._read_register(source)
        number &= self._number_mask
        found = self._handlers.get(number)
        if found is None:
            name = self._isa.linux.calls.get(number, f"system call {number}")
            found = self._handlers[number] = (name, self._calls.get(name))
        name, handler = found
        thread.call_name = name
        for observer in self._tasks.observers:
            observer.system_call(thread, name, arguments)
        if handler is None:
            self._lacking(thread, name)
            self._finish(thread, -ENOSYS)
            return
        result = _or_error(handler, thread, arguments)
        if isinstance(result, Generator):
            thread.call = result
            self.resume(thread)
        elif thread.life is not Life.DEAD:
            if result is None:  # the registers are another program's, or those before a signal
                self._tell(thread, 0)
            else:
                self._finish(thread, result)

    def _lacking(self, thread: Thread, name: str) -> None:
        if name not in self._reported:
            self._reported.add(name)
            self._report(f"{thread.process.name}: the Linux guest has no {name}: the program gets ENOSYS")

    def _finish(self, thread: Thread, result: int) -> None:
        """Give the current thread the result of its system call."""
        self._words[self._result] = result & self._isa.address_mask
        self._tell(thread, result)

    def _tell(self, thread: Thread, result: int) -> None:
        thread.errno = max(0, -result)
        for observer in self._tasks.observers:
            observer.system_call_done(thread, thread.call_name, result)

    def resume(self, thread: Thread) -> bool:
        """Continue a system call that blocks; True if it is over and the thread can continue."""
        call = thread.call
        assert call is not None
        result = _or_error(self._advance, thread, call)
        if result is None:
            return False
        thread.call = thread.wait = None
        if thread.life is Life.DEAD:
            return False
        self._finish(thread, result)
        return True

    def _advance(self, thread: Thread, call: SystemCall) -> int | None:
        """Run a blocking call up to its next wait (None), or to its result."""
        try:
            while True:
                wait = thread.wait
                if wait is None:
                    wait = next(call)
                elif wait.ready():
                    wait = call.send(True)  # noqa: FBT003  it came true
                elif has_signal(thread) and not wait.uninterruptible:
                    try:
                        call.throw(InterruptedBySignalError())
                    except InterruptedBySignalError:
                        return self._delivery.interrupted(thread, always=wait.restarted)
                    return -EINTR
                elif wait.deadline is not None and self._schedule.now() >= wait.deadline:
                    wait = call.send(False)  # noqa: FBT003  the time is over
                else:
                    self._schedule.blocked.add(thread, wait)
                    return None
                thread.wait = wait
        except StopIteration as end:
            return int(end.value)


def _or_error(step: Callable[Given, Result], *given: Given.args, **named: Given.kwargs) -> Result | int:
    """Do a step of a system call; return its result, or the negative number of its error."""
    try:
        return step(*given, **named)
    except LinuxError as error:
        return -error.number
    except BadAddressError:
        return -EFAULT
    except OutOfMemoryError:
        return -ENOMEM
