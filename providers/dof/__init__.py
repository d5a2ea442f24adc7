"""DOF, the DTrace object format: compiled programs, and the probes of user programs."""
