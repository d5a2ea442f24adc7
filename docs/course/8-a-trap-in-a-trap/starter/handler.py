"""The handler of breakpoints, while the probes' own programs hit breakpoints too."""

from trapline.lab.course.cpu import ProbeError


class Handler:
    missed = 0
    """How many hits were not told to a probe, since they came from a probe's program."""

    def trap(self, cpu, address):
        """The breakpoint at `address` was hit.

        cpu.number              which CPU it is: 0, 1 ...
        cpu.fire(address)       runs the probe's program; that may call probed functions itself, and
                                it may raise ProbeError
        cpu.displace(address)   does the work of the displaced instruction, and moves the pc
        """
        cpu.fire(address)
        cpu.displace(address)
