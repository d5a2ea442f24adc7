"""The Unicorn library of this host: where it keeps the state that its public calls do not show.

| module | content |
| --- | --- |
| `emu.wheel.library` | which library it is |
| `emu.wheel.layout` | the offsets: from a table, from calibration, or none (portable mode) |
| `emu.wheel.finding` | the offsets of one library are found by experiments, in a process of its own |
| `emu.wheel.bench` | an engine to experiment with |
| `emu.wheel.common` | the experiments that are the same on every CPU |
| `emu.wheel.reading` | memory of this process is read, also where none may be |

The experiments of one CPU are in `emu/isa/<isa>/calibration.py`.
"""
