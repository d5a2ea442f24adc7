"""The model solution of sheet 8."""

from trapline.lab.course.cpu import ProbeError


class Handler:
    def __init__(self):
        self.missed = 0
        self.busy = set()

    def trap(self, cpu, address):
        if cpu.number in self.busy:
            self.missed += 1
        else:
            self.busy.add(cpu.number)
            try:
                cpu.fire(address)
            except ProbeError:
                pass
            finally:
                self.busy.discard(cpu.number)
        cpu.displace(address)
