"""The cost of a probe: counted exactly, and predicted for real machines by a model.

Reading order:

| module | what it holds |
| --- | --- |
| `events` | the work of a CPU in one hit: traps, steps, returns |
| `models` | the prices of these on real machines, with their sources (`models.toml`) |
| `mechanisms` | the table: each mechanism on each ISA |
| `program` | the cost of probes in a program of the user's |
| `report` | the results as text and as JSON, and the comparison of two |

Counts are exact and the same in every run.  Times are those of the model; this process's own are
measured by `benchmarks/`.
"""
