"""Sites of a kernel's file beside those of the same kernel in memory, after boot."""

from emu.guest.linux_kernel.files import store
from emu.guest.linux_kernel.files.kernel_file import open_image
from emu.isa import ISAS
from providers.linux_kernel.refusals import Blacklist
from providers.linux_kernel.sites import LONGEST, entry_site
from tests.trapline.linux_kernel.test_traced import every_kernel
from trapline.machine.linux_kernel_machine import LinuxKernelOptions, start


@every_kernel
def test_the_file_has_the_entry_sites_and_the_blacklist_of_the_running_kernel(isa):
    traced = start(LinuxKernelOptions(isa=ISAS[isa]))
    facts = traced.guest.facts
    live = Blacklist.from_memory(facts.symbols.address("kprobe_blacklist"), traced.guest.load, facts.symbols)
    kept = Blacklist.from_image(facts)
    file = open_image(store.path_of(ISAS[isa]))
    assert [one.name for one in file.functions if (one.value in live) is not (one.value in kept)] == []
    different = []
    for symbol in file.functions[::10]:
        codes = (
            traced.text.code(symbol.value, 3 * LONGEST),
            file.read(symbol.value, 3 * LONGEST).ljust(3 * LONGEST, b"\0"),
        )
        places = [site and site[0] for site in (entry_site(ISAS[isa], code, symbol.value) for code in codes)]
        if places[0] != places[1]:
            different.append(symbol.name)
    # Of some 4,500 functions: what alternatives rewrite.
    assert len(different) < 20
