"""Guests: functions, kernels and programs that run on the machine."""
