"""The cost of a probe: counted exactly, and predicted for real machines by a model.

Reading order:

| module | what it holds |
| --- | --- |
| `hit_work` | the work of a CPU in one hit: traps, steps, returns |
| `models` | the prices of these on real machines, with their sources (`models.toml`) |
| `rows` | what is measured: the parts of a hit, its accesses, what a probe costs at rest |
| `anatomy` | the parts of a recorded hit |
| `kernel_rows`, `program_rows` | the measurements in the kernel guest and in a Linux program |
| `mechanisms` | all of them, on each ISA |
| `program` | the cost of probes in a program of the user's |
| `scale`, `plots`, `page` | curves, drawn; all results as one page |
| `host`, `peers` | the same on this host: its own probes, and other tools |
| `tables` | the results as tables |
| `report` | the results as text and as JSON, and the comparison of two |

Counts are exact and the same in every run.  Times are those of the models, apart from those of the
host, its tools, and the curves; how long a hit takes in this emulator is measured by `benchmarks/`.
"""
