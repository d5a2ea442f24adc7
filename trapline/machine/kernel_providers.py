"""The providers of a kernel guest: each exists while its file is loaded in the guest.

A traced guest's boot loader loads dtraceall.ko, which needs all of them; later loads and unloads of
the guest are followed.  A provider with an enabled probe prevents the unloading of its file, as a
module with an enabled probe does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from emu.engine.events.event_counts import Code, EventCounts
from emu.guest.kernel.guest import KernelGuest
from emu.guest.kernel.malloc_types import MallocTypes
from emu.guest.kernel.system_calls import SystemCalls
from emu.guest.kernel.trampolines import Trampolines
from emu.guest.kernel.view import Called
from emu.guest.modules import Module
from providers.base import Framework, Provider
from providers.cpc import Cpc
from providers.dtmalloc import Dtmalloc
from providers.fbt import FBT, SignatureSource
from providers.fidelity import Fidelity
from providers.kinst import Kinst
from providers.profile import Profile
from providers.sdt import IllumosSdt, IllumosSite, Sdt
from providers.syscall import Syscall
from trapline.framework.device.dtrace import DTrace

LOADER_CONF: Final = "boot/loader.conf"
PRELOADED: Final = b'dtraceall_load="YES"\n'


class KernelProviders:
    """Creates providers when their files are loaded, and removes them."""

    def __init__(
        self,
        guest: KernelGuest,
        dtrace: DTrace,
        signatures: SignatureSource,
        fidelity: Fidelity,
        watch: Callable[[Framework], Framework],
        user_code: Code,
    ) -> None:
        """Create the providers of the loaded files, and follow later loads.

        `watch` wraps the framework for the providers.  `user_code` returns code of the program that
        runs, without breakpoints.
        """
        watched = watch(dtrace)
        trampolines = Trampolines(guest.engine, guest.image, guest.text_end)
        calls = SystemCalls(guest.engine, guest.image, lambda: guest.thread().address, guest.watch_traced)
        types = MallocTypes(guest.engine, guest.image, guest.watch_traced)
        counts = partial(_counts, guest, trampolines, user_code)
        forgetful = fidelity is Fidelity.FREEBSD
        guest.serve_probes(watched.probe, lambda probe_id: Called(watched.native_runs(probe_id)))
        self._makers: dict[str, Callable[[], Sequence[Provider]]] = {
            "fbt.ko": lambda: [FBT(watched, guest.patcher, guest.traps, guest.isa, signatures, fidelity, keep=True)],
            "kinst.ko": lambda: [Kinst(watched, guest.patcher, guest.traps, guest.isa, trampolines, guest.clock)],
            "profile.ko": lambda: [Profile(dtrace, guest), Cpc(dtrace, guest, counts())],
            "systrace.ko": lambda: [Syscall(dtrace, [calls], forgetful=forgetful)],
            "dtmalloc.ko": lambda: [Dtmalloc(dtrace, types)],
            "sdt.ko": lambda: list(_sdt(guest, dtrace)),
        }
        self._dtrace = dtrace
        self._present: dict[str, Sequence[Provider]] = {}
        present = list(guest.modules)
        dtrace.load_module(Module("kernel", guest.image.symbols, guest.patcher.original))
        for name in self._makers:
            if any(module.name == name for module in present):
                self._make(name)
        for module in present:
            dtrace.load_module(module)
        guest.on_module_loaded = self._loaded
        guest.on_module_unload = self._unloading

    def _make(self, name: str) -> None:
        maker = self._makers.get(name)
        if maker is not None:
            self._present[name] = maker()

    def _loaded(self, module: Module) -> None:
        self._make(module.name)
        self._dtrace.load_module(module)

    def _unloading(self, module: Module) -> bool:
        """Remove a file's probes and providers; False while one of them is in use."""
        providers = self._present.get(module.name, ())
        if any(self._dtrace.enablings(probe) for probe in self._dtrace.table if probe.provider in providers):
            return False
        for provider in providers:
            self._dtrace.unregister(provider)
            provider.unregistered()
        self._present.pop(module.name, None)
        return self._dtrace.unload_module(module)


def _counts(guest: KernelGuest, trampolines: Trampolines, user_code: Code) -> EventCounts | None:
    """Return what counts events by mode.

    With several CPUs there are several clocks, which do not tell what a block has done.
    """

    def code(address: int, size: int) -> bytes:
        if address in trampolines:
            return b""
        return (guest.patcher.original if guest.isa.is_kernel_address(address) else user_code)(address, size)

    return EventCounts(guest.engine, guest.clock, code) if guest.cpu_count == 1 else None


def _sdt(guest: KernelGuest, dtrace: DTrace) -> Iterator[Provider]:
    """Make the providers that the kernel declares itself."""
    yield from Sdt(dtrace, guest, guest.traps.core).providers.values()
    if guest.probe_calls:
        sites = (IllumosSite(*call) for call in guest.probe_calls)
        yield from IllumosSdt(dtrace, guest, guest.traps, sites).providers.values()
