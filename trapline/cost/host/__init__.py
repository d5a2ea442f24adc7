"""The cost of probes on this host: its own breakpoints and uprobes, and other tools."""
