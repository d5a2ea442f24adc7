"""The emulated machine: CPUs, memory, traps and guests.  It knows nothing of probes."""
