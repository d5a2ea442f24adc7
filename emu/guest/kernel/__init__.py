"""The kernel guest: the teaching kernel of testbins/kernel, booted with its programs."""
