"""The check's inner loop in machine code: one site, many states, two CPUs, no Python between."""
