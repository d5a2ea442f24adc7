"""QEMU's functions that Trapline calls: a wheel must export them.

Each CPU has its own version, whose name ends with QEMU's name of the CPU.
"""

from __future__ import annotations

from typing import Final

# The functions that machine code calls: some read code as the translator does.
CALLBACKS: Final = (
    "cpu_ldub_code", "cpu_lduw_code", "cpu_ldl_code", "tlb_flush", "helper_lookup_tb_ptr", "cpu_loop_exit",
)  # fmt: skip
# The functions that Python calls.
ENGINE: Final = ("tb_invalidate_phys_range", "tlb_flush_page", "tlb_flush")
# The functions that running translated blocks needs, with its experiments; some CPUs need more
# (`emu.unicorn_layout.bench.Subject`).
BLOCKS: Final = ("helper_lookup_tb_ptr", "tb_gen_code", "tb_htable_lookup", "tcg_tb_lookup")
