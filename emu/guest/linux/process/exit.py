"""The ends of processes and threads, and their parents' waits. Source: Linux kernel/exit.c."""

from __future__ import annotations

from emu.guest.linux.ipc.sem import SemaphoreSets
from emu.guest.linux.process.futex import Futexes
from emu.guest.linux.process.pid_table import Tasks
from emu.guest.linux.process.process import Life, Process, Thread
from emu.guest.linux.process.rtmutex import PiLocks
from emu.guest.linux.sched.core import Schedule
from emu.guest.linux.sched.switch import OnCpu
from emu.guest.linux.signal.send import Sending
from emu.guest.linux.time.timer import Timers
from emu.guest.linux.tty.ptmx import Terminals
from emu.isa.linux_signals import CLD_DUMPED, CLD_EXITED, CLD_KILLED, IGNORE, LAST, SA_NOCLDWAIT, Signal, SignalInfo
from emu.support.words import BadAddressError


class Endings:
    """Ends the processes and threads of one kernel."""

    def __init__(
        self,
        tasks: Tasks,
        on_cpu: OnCpu,
        schedule: Schedule,
        sending: Sending,
        timers: Timers,
        futexes: Futexes,
        pi_locks: PiLocks,
        semaphores: SemaphoreSets,
        terminals: Terminals,
    ) -> None:
        self._tasks = tasks
        self._on_cpu = on_cpu
        self._schedule = schedule
        self._sending = sending
        self._timers = timers
        self._futexes = futexes
        self._pi_locks = pi_locks
        self._semaphores = semaphores
        self._terminals = terminals

    def exit_process(self, process: Process, status: int) -> None:
        """End a process with a wait status."""
        if process.status is not None:
            return
        process.status = status
        for observer in self._tasks.observers:
            observer.exited(process)
        for thread in list(process.threads):
            self.end_thread(thread)
        self._timers.ended(process)
        process.count_pages()
        if process.limits.cpu is not None:
            process.limits.cpu.set(None)
        self._semaphores.ended(process)
        process.show(None)
        process.files.leave()
        process.leaves_executable()
        self._terminals.ended(process)
        self._on_cpu.leave_space(process.space)
        self._give_children_away(process)
        parent = process.parent
        if parent is None or not parent.alive:
            process.reaped = True
            self._tasks.processes.pop(process.pid, None)
            return
        self._schedule.blocked.changed(parent)
        if 1 <= process.exit_signal <= LAST:
            self._tell_parent(process, parent, status)

    def _give_children_away(self, process: Process) -> None:
        reaper = self._reaper(process)
        for child in process.children:
            child.parent = reaper
            if reaper is not None:
                reaper.children.append(child)
            for thread in child.threads:
                if thread.parent_death_signal:
                    self._sending.send(child, SignalInfo(thread.parent_death_signal, pid=process.pid))
        self._schedule.blocked.changed(reaper)
        process.children.clear()

    def _reaper(self, process: Process) -> Process | None:
        """Return the new parent of the children of a process that ends (find_new_reaper)."""
        above = process.parent
        while above is not None:
            if above.is_reaper and above.alive:
                return above
            above = above.parent
        first = self._tasks.first
        return first if first is not process else None

    def _tell_parent(self, process: Process, parent: Process, status: int) -> None:
        low = status & 0x7F
        code = CLD_EXITED if not low else CLD_DUMPED if status & 0x80 else CLD_KILLED
        info = SignalInfo(process.exit_signal, code, pid=process.pid, status=low or status >> 8)
        self._sending.send(parent, info)
        action = parent.signals.actions[Signal.SIGCHLD]
        if process.exit_signal == Signal.SIGCHLD and (action.handler == IGNORE or action.flags & SA_NOCLDWAIT):
            self.reap(process)

    def reap(self, process: Process) -> None:
        """Forget a process whose end was reported to its parent."""
        process.reaped = True
        self._tasks.processes.pop(process.pid, None)
        if process.parent is not None:
            process.parent.children_ran += process.ran + process.children_ran
            most = (process.parent.children_pages, process.most_pages, process.children_pages)
            process.parent.children_pages = max(most)
        if process.parent is not None and process in process.parent.children:
            process.parent.children.remove(process)
        self._schedule.blocked.changed(process.parent)

    def exit_thread(self, thread: Thread, status: int) -> None:
        """End a thread; its process ends with its last one."""
        process = thread.process
        self._pi_locks.ended(thread)
        if thread.clear_tid:
            try:
                self._on_cpu.write(thread.clear_tid, bytes(4))
                self._futexes.wake(process.space, thread.clear_tid, 1)
            except BadAddressError:
                pass
        self.end_thread(thread)
        if not process.threads:
            self.exit_process(process, status)

    def end_thread(self, thread: Thread) -> None:
        """Take a thread out of all tables."""
        for observer in self._tasks.observers:
            observer.thread_ended(thread)
        thread.life = Life.DEAD
        thread.vfork_done = True
        self._schedule.blocked.changed(thread)
        if thread.call is not None:
            thread.call.close()
            thread.call = None
        self._pi_locks.ended(thread)
        thread.process.threads.remove(thread)
        if thread.files is not None:
            thread.files.leave()
            thread.files = None
        self._tasks.threads.pop(thread.tid, None)
        self._schedule.remove(thread)
        if self._tasks.current is thread:
            self._tasks.current = None
