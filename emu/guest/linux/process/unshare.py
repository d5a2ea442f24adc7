"""Descriptors and surroundings that a thread has for itself.

Source: Linux kernel/fork.c (ksys_unshare, copy_files, copy_fs), fs/exec.c (unshare_files).
"""

from __future__ import annotations

from emu.guest.linux.process.process import Process, Thread


def give(maker: Thread, thread: Thread, *, files: bool, surroundings: bool) -> None:
    """Give a new thread what it shares with its maker, and copies of the rest."""
    process = thread.process
    if not (files and surroundings):
        process.divide()
    if not files:
        thread.files = process.files.copy()
    elif maker.files is not None:
        thread.files = maker.files.share()
    thread.surroundings = maker.surroundings if surroundings else process.surroundings.copy()


def unshare_files(thread: Thread) -> None:
    """Give a thread descriptors that no other thread and no other process has."""
    process = thread.process
    if thread.files is not None:
        thread.files = thread.files.unshared()
    elif len(process.threads) > 1:
        process.divide()
        thread.files = process.files.copy()
    else:
        process.files = process.files.unshared()
        if process.common is not None:
            process.common = (process.files, process.common[1])
    process.show(thread)


def unshare_surroundings(thread: Thread) -> None:
    """Give a thread a root and a working directory of its own."""
    process = thread.process
    process.divide()
    thread.surroundings = process.surroundings.copy()
    process.show(thread)


def join(process: Process, thread: Thread) -> None:
    """Make what the last thread of a process has that of the process, for a new program."""
    if process.common is not None:
        common, _ = process.common
        process.show(thread)
        if thread.files is not None:
            common.leave()
        process.common = thread.files = thread.surroundings = None
    process.files = process.files.unshared()
