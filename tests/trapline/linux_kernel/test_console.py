"""A kernel that is used by its console alone, as `trapline kernel boot` and `shell` do.

These tests need kernels: `make kernels` fetches them.
"""

import re

from emu.elf.image import Image
from emu.guest.linux_kernel.files import store
from emu.guest.linux_kernel.machine import snapshot
from emu.isa import ISAS
from providers import kinst
from tests.trapline.linux_kernel.test_traced import every_kernel
from trapline.machine.linux_kernel_machine import LinuxKernelOptions, command_line, machine_of


@every_kernel
def test_the_kernels_own_uprobes_count_every_instruction_of_a_program(isa):
    """The kernel writes one displaced instruction after the other to one place."""
    image = Image(store.stored(ISAS[isa]).busybox)
    first = image.offset_of(image.entry)
    offsets = list(kinst.PORTS[isa].boundaries(image.read(image.entry, 64)))[:6]
    commands = [
        "cd /sys/kernel/tracing",
        *(f"echo p:u{offset} /bin/busybox:{first + offset:#x} >> uprobe_events" for offset in offsets),
        "echo 1 > events/uprobes/enable",
        "/bin/busybox true",
        "/bin/busybox echo one",
        "echo 0 > events/uprobes/enable",
        "/bin/busybox cat uprobe_profile",
    ]
    shown = bytearray()
    machine = machine_of(LinuxKernelOptions(ISAS[isa], console=shown.extend))
    snapshot.booted(machine)
    machine.command(command_line(commands))
    machine.run(None)
    found = re.findall(r"/bin/busybox +(\w+) +(\d+)", bytes(shown).decode())
    assert found == [(f"u{offset}", "2") for offset in offsets]
