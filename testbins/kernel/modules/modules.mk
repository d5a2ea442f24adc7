# Kernel modules: relocatable files, in the initrd below /boot/kernel, with their types as CTF.

# FreeBSD has no kinst for i386.
NO_MODULES.i386 := $K/modules/kinst.c
MODULES := $(patsubst $K/modules/%.c,$(OUT)/boot/kernel/%.ko,$(filter-out $(NO_MODULES.$(ISA)),$(sort $(wildcard $K/modules/*.c))))
MODULE.riscv64 := -mno-relax

.PHONY: modules
modules: $(MODULES)

# CTF has the source's path, from the directory that PWD names: no prefix map is asked about it.  Its entries come in the
# order of the compiler's own addresses, which are the same every time without address space randomization (setarch -R).
$(OUT)/boot/kernel/%.ko: $K/modules/%.c $(OBJ)/assym.h
	@mkdir -p $(@D) $(OBJ)/modules
	PWD=/proc/self/cwd setarch -R $(CC) $(KCFLAGS) -I$K/modules $(MODULE.$(ISA)) -g0 -gctf -DKLD_MODULE -MMD -MF $(OBJ)/modules/$*.d -c -o $@ $<
	$(STRIP) --strip-debug -R .comment -R .note.GNU-stack -R .riscv.attributes $@

-include $(wildcard $(OBJ)/modules/*.d)
