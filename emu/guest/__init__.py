"""What runs on the machine: functions, kernels, programs."""
