"""The addresses that machine code for hooks uses."""

from __future__ import annotations

from dataclasses import dataclass

from emu.native.operations import Value


@dataclass(frozen=True)
class HookPlaces:
    """Values that the linker inserts."""

    table: Value
    """The `CodeHookTable`."""
    hooked: Value
    """The `Hooked`."""
    words: Value
    """The engine's words (`emu.engine.state`)."""
    env: Value
    """The CPU state."""
    context: Value
    """QEMU's context for translation."""
    code_byte: Value
    """U32 cpu_ldub_code(env, address): a byte as the translator reads it."""
    next_block: Value
    """Code *helper_lookup_tb_ptr(env): the block at the pc, or the code that ends the run."""
    correct: Value
    """U64 correct(address): executes the instruction there; 0: QEMU does it right."""
    leave: Value
    """Void cpu_loop_exit(cpu): jumps to the emulator's loop, which goes on at the pc."""
