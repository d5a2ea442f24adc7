# Linux programs: unlike everything else here they stand on the C and C++ libraries of Debian 12. The zoo, static and dynamic, and one that needs no library.

L := linux
CXX := $(CROSS)g++

LINUX_MACHINE.x86_64 := -march=x86-64 -fcf-protection=none
LINUX_MACHINE.aarch64 := -march=armv8-a -mbranch-protection=none -mno-outline-atomics
LINUX_MACHINE.riscv64 := -march=rv64gc -mabi=lp64d
# Debian's g++-multilib; or its packages unpacked below I386_ROOT (libc6-dev-i386, lib32gcc-12-dev, lib32stdc++-12-dev and what they need).
I386_ROOT ?=
LINUX_MACHINE.i386 := -m32 -march=i686 -fcf-protection=none
ifneq ($(I386_ROOT),)
LINUX_MACHINE.i386 += -B$(I386_ROOT)/usr/lib/gcc/x86_64-linux-gnu/12/32 -B$(I386_ROOT)/usr/lib32 \
	-L$(I386_ROOT)/usr/lib/gcc/x86_64-linux-gnu/12/32 -L$(I386_ROOT)/usr/lib32 \
	-isystem $(I386_ROOT)/usr/include/x86_64-linux-gnu/c++/12/32 -isystem $(I386_ROOT)/usr/include/x86_64-linux-gnu \
	-isystem $(I386_ROOT)/usr/include -isystem /usr/include/x86_64-linux-gnu
endif
LINUX_LINK_MACHINE.i386 = $(LINUX_MACHINE.i386) $(if $(I386_ROOT),-Wl$(comma)--sysroot=$(I386_ROOT))
comma := ,
# What distributions set differently is set here.
LINUX_COMMON := -O2 -g0 -fno-omit-frame-pointer -fno-stack-protector -U_FORTIFY_SOURCE -Wall -Wextra -Werror \
	-ffunction-sections -fdata-sections -I$L $(LINUX_MACHINE.$(ISA)) $(REPRODUCIBLE)
LINUX_LINK := -Wl,--build-id=none -Wl,--gc-sections -Wl,-z,noexecstack -Wl,-z,max-page-size=4096 -Wl,--hash-style=gnu
LXXFLAGS := -std=gnu++20 $(LINUX_COMMON)

ZOO := $(filter-out plugin_module,$(basename $(notdir $(sort $(wildcard $L/*.cc)))))
STATIC_OBJECTS := $(patsubst %,$(OBJ)/$L/static/%.o,$(ZOO)) $(OBJ)/$L/asm_$(ISA).o
DYNAMIC_OBJECTS := $(patsubst %,$(OBJ)/$L/dynamic/%.o,$(filter-out libzoo,$(ZOO))) $(OBJ)/$L/asm_$(ISA).o
LINUX_PROGRAMS := $(addprefix $(OUT)/$L/,zoo zoo-dyn libzoo.so plugin.so tiny calls initial judge)

.PHONY: linux-programs
linux-programs: $(LINUX_PROGRAMS)

# Every call of this file has a frame of its own.
%/recursion.o: LXXFLAGS += -fno-optimize-sibling-calls

$(OBJ)/$L/static/%.o: $L/%.cc
	@mkdir -p $(@D)
	$(CXX) $(LXXFLAGS) -fno-pie -MMD -c -o $@ $<

$(OBJ)/$L/dynamic/%.o: $L/%.cc
	@mkdir -p $(@D)
	$(CXX) $(LXXFLAGS) -fPIE -DZOO_DYNAMIC -MMD -c -o $@ $<

$(OBJ)/$L/shared/%.o: $L/%.cc
	@mkdir -p $(@D)
	$(CXX) $(LXXFLAGS) -fPIC -MMD -c -o $@ $<

$(OBJ)/$L/asm_%.o: $L/asm_%.S $L/asm.h
	@mkdir -p $(@D)
	$(CC) $(LINUX_MACHINE.$(ISA)) -Wa,--noexecstack -c -o $@ $<

$(OUT)/$L/zoo: $(STATIC_OBJECTS)
	@mkdir -p $(@D)
	$(CXX) -static -no-pie $(LINUX_LINK_MACHINE.$(ISA)) $(LINUX_LINK) -o $@ $^
	$(STRIP) --strip-debug $@

# --export-dynamic-symbol: the plugin calls say().
$(OUT)/$L/zoo-dyn: $(DYNAMIC_OBJECTS) $(OUT)/$L/libzoo.so
	@mkdir -p $(@D)
	$(CXX) -pie $(LINUX_LINK_MACHINE.$(ISA)) $(LINUX_LINK) -Wl,--export-dynamic-symbol=say -Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN' -o $@ $^
	$(STRIP) --strip-debug $@

$(OUT)/$L/libzoo.so: $(OBJ)/$L/shared/libzoo.o
	@mkdir -p $(@D)
	$(CXX) -shared $(LINUX_LINK_MACHINE.$(ISA)) $(LINUX_LINK) -Wl,-soname,libzoo.so -o $@ $^
	$(STRIP) --strip-debug $@

$(OUT)/$L/plugin.so: $(OBJ)/$L/shared/plugin_module.o
	@mkdir -p $(@D)
	$(CXX) -shared $(LINUX_LINK_MACHINE.$(ISA)) $(LINUX_LINK) -o $@ $^
	$(STRIP) --strip-debug $@

$(OUT)/$L/tiny: $L/tiny.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -ffreestanding -fno-pie -fno-asynchronous-unwind-tables $(LINUX_COMMON) -nostdlib -static -no-pie $(LINUX_LINK) -o $@ $<
	$(STRIP) --strip-debug $@

# System calls by theme: plain C on glibc; on i386 with the C library of the cross compiler, which needs no other packages.
CALLS_CROSS.x86_64 := $(CROSS.x86_64)
CALLS_CROSS.aarch64 := $(CROSS.aarch64)
CALLS_CROSS.riscv64 := $(CROSS.riscv64)
CALLS_CROSS.i386 := i686-linux-gnu-
CALLS_SOURCES := $(sort $(wildcard $L/calls/*.c))

$(OUT)/$L/calls: $(CALLS_SOURCES) $L/calls/calls.h
	@mkdir -p $(@D)
	$(CALLS_CROSS.$(ISA))gcc -std=gnu11 $(LINUX_COMMON) -pthread -static -no-pie $(LINUX_MACHINE.$(ISA)) $(LINUX_LINK) -o $@ $(CALLS_SOURCES) -lm
	$(CALLS_CROSS.$(ISA))strip -s $@

# Executes cases of instructions (tests/fuzz/judge): no library, and no global pointer, since a case has all registers.
JUDGE_MACHINE.x86_64 := -march=x86-64 -mno-sse
JUDGE_MACHINE.i386 := -march=i686 -mno-sse
JUDGE_MACHINE.aarch64 := -march=armv8-a -mgeneral-regs-only -mno-outline-atomics
JUDGE_MACHINE.riscv64 := -march=rv64imac_zicsr_zifencei -mabi=lp64 -mcmodel=medany -msmall-data-limit=0 -Wl,--no-relax
$(OUT)/$L/judge: $L/judge/judge.c $L/judge/judge.h $L/judge/$(ISA)/port.h
	@mkdir -p $(@D)
	$(CALLS_CROSS.$(ISA))gcc $(filter-out $(MACHINE.$(ISA)),$(COMMON)) $(JUDGE_MACHINE.$(ISA)) -I$L/judge -I$L/judge/$(ISA) $(LINK) -o $@ $<
	$(CALLS_CROSS.$(ISA))strip -s $@

$(OUT)/$L/initial: $(OBJ)/$L/initial_$(ISA).o
	@mkdir -p $(@D)
	$(CC) $(LINUX_MACHINE.$(ISA)) -nostdlib -static -no-pie $(LINUX_LINK) -o $@ $<

$(OBJ)/$L/initial_%.o: $L/initial_%.S
	@mkdir -p $(@D)
	$(CC) $(LINUX_MACHINE.$(ISA)) -Wa,--noexecstack -c -o $@ $<

-include $(STATIC_OBJECTS:.o=.d) $(DYNAMIC_OBJECTS:.o=.d) $(OBJ)/$L/shared/libzoo.d $(OBJ)/$L/shared/plugin_module.d
