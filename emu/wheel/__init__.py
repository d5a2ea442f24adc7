"""The Unicorn library of this host, and the places of the state that its public calls hide.

| module | content |
| --- | --- |
| `emu.wheel.library` | the identity of the library |
| `emu.wheel.layout` | the offsets: from a table, from calibration, or none (portable mode) |
| `emu.wheel.finding` | the search of the offsets by experiments, in a process of its own |
| `emu.wheel.bench` | an engine to experiment with |
| `emu.wheel.common` | the experiments that are the same on every CPU |
| `emu.wheel.reading` | reads memory of this process that may not be mapped |

The experiments of one CPU are in `emu/isa/<isa>/calibration.py`.
"""
