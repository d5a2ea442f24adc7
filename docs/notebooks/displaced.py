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
# # What becomes of an instruction
#
# A breakpoint takes the place of an instruction, so something has to do what the instruction would
# have done. The table shows what four providers do. Move the mouse over a cell to see the rule.

# %%
import trapline

trapline.displace("x86_64", "push rbp; mov rbp, rsp; cmp dword ptr [rip+8], 0; jne 5; loop 0; ret")

# %% [markdown]
# Between a load-exclusive and its store-exclusive no probe is allowed: the trap would lose the
# reservation, and the loop would never end.

# %%
code = trapline.displace("aarch64", "ldxr x1, [x0]; add x1, x1, #1; stxr w2, x1, [x0]; cbnz w2, #0")
assert [one.decision("pid").what for one in code[:3]] == ["refused"] * 3
code

# %% [markdown]
# The same instructions run, the original beside what replaces it:

# %%
done = trapline.execute("riscv64", "c.addi16sp sp, -32; c.sdsp ra, 24(sp); auipc a0, 1; c.jr ra", {"ra": 0x9000})
assert done.same
done

# %% [markdown]
# And this is a whole firing, instruction by instruction. Move the slider, or use the arrow keys.

# %%
firing = trapline.step("fbt::sys_getpid:entry { trace(execname); }", isa="riscv64", command="getpid 1")
assert "getpid" in firing.output
firing

# %% [markdown]
# The same with a mistake in the handler: the step where it begins says what goes wrong.

# %%
wrong = trapline.step("fbt::sys_getpid:entry", isa="riscv64", command="getpid 1", fault="pc-not-advanced")
print(wrong.ending)
