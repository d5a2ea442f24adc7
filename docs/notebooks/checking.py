# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Is it still the same program?
#
# `trapline.sites` shows where probes go; `trapline.check` tries each place in awkward states of the
# CPU, and compares the original with the patched instruction.

# %%
import trapline

trapline.sites("testbins:zoo", function="fib", isa="aarch64")

# %%
checked = trapline.check("testbins:zoo", function="fib", isa="aarch64", every_instruction=True, states=10, run=False)
assert checked.same
checked

# %% [markdown]
# FreeBSD's own rule for `loop` on x86 counts one too many. With `fidelity="freebsd"` the bug is
# there, and the check finds it:

# %%
wrong = trapline.check(asm="loop 0x400000", provider="pid", fidelity="freebsd", states=40)
assert not wrong.same
wrong
