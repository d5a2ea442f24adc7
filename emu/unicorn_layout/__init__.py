"""The Unicorn library of this host, and the places of the state that its public calls hide.

| module | content |
| --- | --- |
| `emu.unicorn_layout.library` | the identity of the library |
| `emu.unicorn_layout.layout` | the offsets: from a table, from calibration, or none (portable mode) |
| `emu.unicorn_layout.find` | the search of the offsets by experiments, in a process of its own |
| `emu.unicorn_layout.bench` | an engine to experiment with |
| `emu.unicorn_layout.common` | the experiments that are the same on every CPU |
| `emu.unicorn_layout.read` | reads memory of this process that may not be mapped |

The experiments of one CPU are in `emu/isa/<isa>/calibration.py`.
"""
