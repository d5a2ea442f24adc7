"""Boot the kernel guest and show its console: python -m emu.guest.kernel --isa riscv64."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from emu.guest.kernel.guest import KernelGuest
from emu.guest.kernel.panic import KernelPanicError
from emu.isa import DEFAULT_ISA, ISAS


def main() -> int:
    """Run the guest to power off; returns its status, 1 after a panic."""
    parser = argparse.ArgumentParser(prog="python -m emu.guest.kernel", description="Boot the kernel guest.")
    parser.add_argument("--isa", choices=ISAS, default=DEFAULT_ISA.name)
    parser.add_argument("--kernel", type=Path, help="a kernel image instead of the checked-in one")
    parser.add_argument("--rc", type=Path, help="a start-up script instead of /etc/rc")
    parser.add_argument("--quiet", action="store_true", help="do not sum up at the end")
    arguments = parser.parse_args()
    console = sys.stdout.buffer

    def show(text: bytes) -> None:
        console.write(text)
        console.flush()

    files = {"etc/rc": arguments.rc.read_bytes()} if arguments.rc else {}
    guest = KernelGuest(ISAS[arguments.isa], image=arguments.kernel, files=files, console=show, console_input=b"")
    start = time.perf_counter()
    try:
        guest.boot()
        guest.run(None)
    except KernelPanicError as panic:
        sys.stderr.write(panic.report() + "\n")
        return 1
    if not arguments.quiet:
        seconds = time.perf_counter() - start
        count = guest.engine.instructions
        sys.stderr.write(
            f"{count:,} instructions, {guest.now() / 1e9:.3f} virtual seconds, "
            f"{seconds:.2f} s ({count / seconds / 1e6:.0f} MIPS)\n"
        )
    return guest.exit_status or 0


if __name__ == "__main__":
    sys.exit(main())
