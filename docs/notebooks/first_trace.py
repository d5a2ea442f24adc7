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
# # A first trace
#
# A D program runs over a small kernel, on an emulated CPU. The aggregation below counts which
# programs call the kernel's `malloc`, and how many bytes they ask for.

# %%
import trapline

trace = trapline.trace(
    "fbt::malloc:entry { @calls[execname] = count(); @bytes[execname] = quantize(arg0); }",
    isa="riscv64",
    command="cat /etc/motd",
)
trace

# %% [markdown]
# The guest's output, and one aggregation as a dictionary:

# %%
print(trace.output)
trace.aggregation("calls")

# %% [markdown]
# The same program gives the same counts on each ISA, as far as the kernel does the same there.

# %%
counts = {
    isa: trapline.trace("syscall:::entry { @[probefunc] = count(); }", isa=isa, command="cat /etc/motd").aggregation()
    for isa in ("x86_64", "aarch64", "riscv64", "i386")
}
assert len({one["read"] for one in counts.values()}) == 1
counts
