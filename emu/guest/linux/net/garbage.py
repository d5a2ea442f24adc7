"""Files on their way in sockets that no process can receive from any more.

A socket that is sent through another, and the other through it, stays open when both are closed.
Source: Linux net/unix/garbage.c.
"""

from __future__ import annotations

from collections.abc import Iterable

from emu.guest.linux.fs.open_file import OpenFile
from emu.guest.linux.net.unix import Socket
from emu.guest.linux.process.process import Process


def collect(processes: Iterable[Process], files: set[OpenFile]) -> None:
    """Drop the messages of those of the open `files` that are sockets no process can reach."""
    reached: set[OpenFile] = set()
    to_visit = [table.get(number) for process in processes for table in process.tables for number in table]
    while to_visit:
        file = to_visit.pop()
        if file in reached:
            continue
        reached.add(file)
        if isinstance(file, Socket):
            to_visit += file.waiting
            to_visit += (sent for message in file.inbox.messages() for sent in message.files)
    for file in sorted(files - reached, key=lambda file: file.inode.number):
        if isinstance(file, Socket):
            file.inbox.drop()
