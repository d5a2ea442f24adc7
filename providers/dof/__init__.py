"""DOF, the DTrace object format: what programs for the framework and the probes of user programs come in."""
