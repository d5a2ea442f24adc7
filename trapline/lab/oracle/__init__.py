"""Trapline's probes beside a Linux kernel's own: same boot, program and functions."""
