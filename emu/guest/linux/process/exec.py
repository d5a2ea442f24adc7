"""The start of programs: the first process, and execve. Source: Linux fs/exec.c."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emu.guest.linux.errno import EACCES, ENOMEM, ETXTBSY, LinuxError
from emu.guest.linux.fs.fdtable import Descriptors
from emu.guest.linux.fs.namei import path_of, walk
from emu.guest.linux.mm.page_frames import OutOfMemoryError
from emu.guest.linux.process import binfmt_elf
from emu.guest.linux.process.cred import EXECUTE
from emu.guest.linux.process.personality import started
from emu.guest.linux.process.process import (
    INIT,
    AlternateStack,
    Life,
    Process,
    Signals,
    Surroundings,
    Thread,
    unshare_for_exec,
)
from emu.guest.linux.sched.thread_segments import Segments

if TYPE_CHECKING:
    from emu.guest.linux.fs.dir import Directory
    from emu.guest.linux.fs.inode import Inode
    from emu.guest.linux.fs.regular import RegularFile
    from emu.guest.linux.kernel import Kernel

_NAME_MAX = 15


def start(
    kernel: Kernel,
    path: str,
    arguments: tuple[bytes, ...],
    environment: tuple[bytes, ...],
    files: Descriptors,
    directory: Directory | None = None,
) -> Process:
    """Make the first process.  Raises `LinuxError`."""
    pid = kernel.tasks.new_number()
    surroundings = Surroundings(kernel.root, directory or kernel.root)
    process = Process(pid, None, kernel.on_cpu.empty_space(), files, surroundings, Signals(), group=pid, session=pid)
    thread = Thread(pid, process)
    kernel.processes[pid] = kernel.tasks.first = process
    kernel.tasks.init = make_init(kernel)
    kernel.tasks.current = thread
    kernel.add_thread(thread)
    execute(kernel, thread, path, arguments, environment)
    return process


def execute(
    kernel: Kernel, thread: Thread, path: str, arguments: tuple[bytes, ...], environment: tuple[bytes, ...]
) -> None:
    """Replace what the current thread's process runs (execve).

    Raises `LinuxError`; then nothing has changed.
    """
    process = thread.process
    program = _load(kernel, process, path, arguments, environment)
    if is_mapped_for_writing(kernel, program.file):
        program.space.release()
        raise LinuxError(ETXTBSY)
    for observer in kernel.observers:
        observer.before_exec(process)
    _end_other_threads(kernel, thread)
    kernel.pi_locks.ended(thread)
    process.count_pages()
    kernel.on_cpu.leave_space(process.space)
    process.space = program.space
    program.space.restorer = program.restorer
    kernel.on_cpu.use(program.space)
    unshare_for_exec(process, thread)
    process.files.executed()
    kernel.timers.executed(process)
    _reset_signals(process)
    process.frames.clear()
    process.runs(program.file)
    process.path, process.entry = program.path, program.program_entry
    process.arguments, process.environment = program.arguments, environment
    process.auxiliary = program.auxiliary
    process.name = program.path.rsplit("/", 1)[-1][:_NAME_MAX]
    process.executed = True
    before = process.credentials.user, process.credentials.group
    process.credentials.executed(program.file)
    changed = before != (process.credentials.user, process.credentials.group)
    thread.personality = started(thread.personality, kernel.abi, changed=changed)
    thread.clear_tid = thread.robust_list = 0
    thread.stack = AlternateStack()
    thread.segments = Segments()
    thread.vfork_done = True
    kernel.schedule.blocked.changed(thread)
    kernel.on_cpu.reset_registers(program.entry, program.stack)
    for observer in kernel.observers:
        observer.executed(process)


def _load(
    kernel: Kernel, process: Process, path: str, arguments: tuple[bytes, ...], environment: tuple[bytes, ...]
) -> binfmt_elf.Loaded:
    try:
        return binfmt_elf.load(
            kernel.frames,
            kernel.abi,
            lambda name: _find_program(process, name),
            path,
            arguments,
            environment,
            kernel.random.randbytes(16),
            process.credentials,
        )
    except OutOfMemoryError:
        raise LinuxError(ENOMEM) from None


def is_mapped_for_writing(kernel: Kernel, file: RegularFile) -> bool:
    """Return whether a process shares a mapping of the file, by which it can be written."""
    if not file.mapped_for_writing:
        return False
    return any(area.shared and area.may_write for _, area in kernel.tasks.mappings(file))


def _find_program(process: Process, path: str) -> tuple[Inode, str]:
    surroundings = process.surroundings
    dentry = walk(surroundings.root, surroundings.directory, path, credentials=process.credentials)
    inode = dentry.found()
    if not process.credentials.may(inode, EXECUTE):
        raise LinuxError(EACCES)
    if inode is process.executable:
        return inode, process.path  # /proc/self/exe has no better name
    return inode, path_of(surroundings.root, dentry.directory, dentry.name)


def _end_other_threads(kernel: Kernel, thread: Thread) -> None:
    """Leave a process with this one of its threads, which becomes its first."""
    process = thread.process
    for other in list(process.threads):
        if other is not thread:
            kernel.endings.end_thread(other)
    if thread.tid != process.pid:
        del kernel.threads[thread.tid]
        thread.tid = process.pid
        kernel.threads[thread.tid] = thread


def _reset_signals(process: Process) -> None:
    """Handlers are gone; what was ignored stays ignored."""
    process.signals = process.signals.copy()
    for action in process.signals.actions:
        if action.handler > 1:
            action.handler = 0
        action.flags = action.mask = action.restorer = 0


def make_init(kernel: Kernel) -> Process:
    """Return process 1: the parent of the first process, as far as programs can ask about it.

    It is root's, has no program and no memory, is never on the CPU, and gets no signals.
    """
    space, files = kernel.on_cpu.empty_space(), Descriptors(kernel.open_files)
    around = Surroundings(kernel.root, kernel.root)
    process = Process(INIT, None, space, files, around, Signals(), group=INIT, session=INIT, name="init")
    process.threads.append(Thread(INIT, process, life=Life.BLOCKED))
    return process
