"""Breakpoint probes: the patcher, the trap, the handlers, the displaced instruction's execution."""
