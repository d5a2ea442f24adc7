"""A process that forks while its code is patched.

A fork has two steps: the memory is copied, and then the tracer is told.  The child has a page of
its own, which the patcher reaches only if the child was there when it listed the processes.  In
uprobes a child inherits the breakpoints, because these belong to the file; what is done to the
child's page is done at once.  The pid provider's probes belong to one process, so it removes the
breakpoints that the child has inherited, if it still knows them (Linux kernel/fork.c, dup_mmap;
kernel/events/uprobes.c, build_map_info; FreeBSD sys/kern/kern_fork.c, do_fork, and fasttrap_fork).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trapline.lab.race.memory import Content
from trapline.lab.race.patch import Patch
from trapline.lab.race.state import Cpu, Mode, Move, World

# Provider -> whether a child inherits its probes.
INHERITED: Final = {"uprobe": True, "pid": False}


def canonical(world: World) -> World:
    """Return the state without those contents of the child that cannot be fetched any more."""
    if len(world.child) < 2:
        return world
    floors = [cpu.floor for cpu in world.cpus if cpu.forked and cpu.mode is not Mode.DONE]
    oldest = min(floors, default=len(world.child) - 1)
    cpus = tuple(cpu._replace(floor=max(0, cpu.floor - oldest)) if cpu.forked else cpu for cpu in world.cpus)
    return world._replace(child=world.child[oldest:], cpus=cpus)


class ForkSteps:
    """The steps of a CPU whose thread forks; it goes on as the child."""

    def __init__(self, patch: Patch) -> None:
        self._patch = patch
        self.inherits = INHERITED.get(patch.provider, False)
        """Whether the child's breakpoints belong to the probe, too."""

    def moves(self, world: World, number: int) -> Iterator[Move]:
        """Yield the possible steps of a fork: the first one, once in a race, and the second."""
        cpu = world.cpus[number]
        if cpu.mode is Mode.FORKS:
            yield self._told(world, number)
        elif cpu.mode is Mode.RUNS and not world.child and not world.excluded:
            # The child's page is another one, so that its content is not mixed with the parent's.
            page = Content(world.history[-1].page + 1, world.history[-1].data)
            forks = cpu._replace(mode=Mode.FORKS, forked=True, floor=0)
            text = f"forks at {self._patch.where(cpu.pc)}: the child's memory is a copy, {page.data.hex(' ')}"
            yield Move(f"{number + 1}f", text, self._with(world, number, forks)._replace(child=(page,)))

    def _told(self, world: World, number: int) -> Move:
        """Return the step in which the tracer learns of the child."""
        child, text = world.child, "the tracer learns of the child, which inherits the probes"
        if not self.inherits:
            text = "the tracer learns of the child, and has no breakpoint to remove"
            if world.known:
                child = (Content(child[-1].page, self._patch.old),)
                text = "the tracer learns of the child, and removes the breakpoints that it knows"
        after = self._with(world, number, world.cpus[number]._replace(mode=Mode.RUNS))
        return Move(f"{number + 1}t", text, after._replace(child=child))

    @staticmethod
    def _with(world: World, number: int, cpu: Cpu) -> World:
        return world._replace(cpus=(*world.cpus[:number], cpu, *world.cpus[number + 1 :]))

    @staticmethod
    def reached(world: World, data: bytes) -> World:
        """Return the state after the patcher has written the child's page, if it knows the child."""
        if not world.listed:
            return world
        child = (*world.child, Content(world.child[-1].page + 1, data))
        cpus = tuple(cpu._replace(floor=len(child) - 1) if cpu.forked else cpu for cpu in world.cpus)
        return world._replace(child=child, cpus=cpus)
