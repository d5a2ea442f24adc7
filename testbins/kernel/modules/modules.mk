# Kernel modules: relocatable files, in the initrd below /boot/kernel.

MODULES := $(patsubst $K/modules/%.c,$(OUT)/boot/kernel/%.ko,$(sort $(wildcard $K/modules/*.c)))
MODULE.riscv64 := -mno-relax

.PHONY: modules
modules: $(MODULES)

$(OUT)/boot/kernel/%.ko: $K/modules/%.c $(OBJ)/assym.h
	@mkdir -p $(@D) $(OBJ)/modules
	$(CC) $(KCFLAGS) $(MODULE.$(ISA)) -g0 -DKLD_MODULE -MMD -MF $(OBJ)/modules/$*.d -c -o $@ $<
	$(STRIP) --strip-debug -R .comment -R .note.GNU-stack -R .riscv.attributes $@

-include $(wildcard $(OBJ)/modules/*.d)
