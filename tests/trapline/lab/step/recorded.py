"""Recordings that several tests look at, each made once."""

from functools import cache

from emu.guest.kernel.trap_path import TrapPath
from emu.isa import ISAS
from trapline.lab.step.machines import StepRequest
from trapline.lab.step.run import record

HOST, GUEST = TrapPath


@cache
def recorded(isa, clause="fbt::sys_getpid:entry", path=HOST, **options):
    """Return the recording of a clause on one ISA; the default command is `getpid 1`."""
    options.setdefault("command", "getpid 1")
    return record(StepRequest(clause, ISAS[isa], trap_path=path, **options))


def recorded_jump(isa):
    """Return a recording with all that a recording can have: the enabling, a predicate, DIF, and a jump of SDT."""
    clause = 'vfs:namei:lookup:entry /execname == "cat"/ { trace(arg0 + 1); }'
    return recorded(isa, clause, command="cat /etc/motd", from_enable=True)
