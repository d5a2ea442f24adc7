"""DOF, the DTrace object format.

What programs for the framework and the probes of user programs come in.
"""
