# The programs of the guest. Most are position independent and share lib/libc.so.7, which libexec/ld-elf.so.1 loads; a few stand alone at 0x400000.

U := user
USER_FLAGS := $(COMMON) $(USER.$(ISA)) -g0 -I$U/libc -I$U/rtld -I$U/usdt -I$U/dtrace -I$U/libthr -I$K -I$K/$(ISA)
UCFLAGS := $(USER_FLAGS) -ffunction-sections -fdata-sections
PICFLAGS := $(USER_FLAGS) -fPIC
# rtld runs before it is relocated: nothing of it may be reached by way of a table.
RTLDFLAGS := $(USER_FLAGS) -fPIC -include $U/rtld/hidden.h
SHARED := -nostdlib $(MACHINE.$(ISA)) -Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,norelro -Wl,-z,max-page-size=4096 \
	-Wl,-z,noseparate-code -Wl,--hash-style=sysv -Wl,-z,lazy -Wl,--no-warn-rwx-segments

# What libc has of the kernel's sources.
LIBKERN := $K/kern/kvprintf.c $K/kern/libkern.c $(wildcard $K/$(ISA)/qdivrem.c)
LIBC_SOURCES := $U/libc/$(ISA).S $(sort $(wildcard $U/libc/*.c)) $(LIBKERN)
LIBC := $(patsubst %,$(OBJ)/user/%.o,$(LIBC_SOURCES))
LIBC_PIC := $(patsubst %,$(OBJ)/pic/%.o,$(LIBC_SOURCES))
RTLD_SOURCES := $U/rtld/rtld.c $U/rtld/$(ISA).S $U/libc/$(ISA).S $(patsubst %,$U/libc/%.c,errno strerror basename) $(LIBKERN)
RTLD := $(patsubst %,$(OBJ)/rtld/%.o,$(RTLD_SOURCES))
CRT := $U/csu/$(ISA).S

PROGRAMS := $(patsubst $U/%.c,%,$(sort $(wildcard $U/bin/*.c $U/sbin/*.c $U/usr/bin/*.c)))
# What runs when nothing else does, and what damages itself.
STATIC := sbin/init bin/sh bin/crash
DYNAMIC := $(filter-out $(STATIC),$(PROGRAMS))
LIBTHR := $(patsubst %,$(OBJ)/pic/%.o,$(sort $(wildcard $U/libthr/*.c)) $U/usdt/drti.c)
LIBRARIES := $(OUT)/libexec/ld-elf.so.1 $(OUT)/lib/libc.so.7 $(OUT)/lib/libthr.so.3

# The other files of the initrd, as they are; pages of the manual are packed.
FILES := $(patsubst %,$(OUT)/%,$(sort $(wildcard etc/* usr/bin/*)))
PAGES := $(patsubst %,$(OUT)/%.gz,$(sort $(wildcard usr/share/man/man*/*)))

.PHONY: programs
.SECONDARY:
programs: $(addprefix $(OUT)/,$(PROGRAMS)) $(LIBRARIES) $(FILES) $(PAGES)

$(OBJ)/user/%.o: %
	@mkdir -p $(@D)
	$(CC) $(UCFLAGS) -MMD -c -o $@ $<

$(OBJ)/pic/%.o: %
	@mkdir -p $(@D)
	$(CC) $(PICFLAGS) -MMD -c -o $@ $<

$(OBJ)/rtld/%.o: %
	@mkdir -p $(@D)
	$(CC) $(RTLDFLAGS) -MMD -c -o $@ $<

$(addprefix $(OUT)/,$(STATIC)): $(OUT)/%: $(OBJ)/user/$U/%.c.o $(OBJ)/user/$(CRT).o $(LIBC) $U/program.ld
	@mkdir -p $(@D)
	$(CC) $(LINK) $(MACHINE.$(ISA)) -Wl,--gc-sections -Wl,-T,$U/program.ld -o $@ $(filter %.o,$^)
	$(STRIP) --strip-debug $@

$(addprefix $(OUT)/,$(DYNAMIC)): $(OUT)/%: $(OBJ)/pic/$U/%.c.o $(OBJ)/pic/$(CRT).o $(OUT)/lib/libc.so.7
	@mkdir -p $(@D)
	$(CC) $(SHARED) -pie -Wl,--dynamic-linker=/libexec/ld-elf.so.1 -o $@ $^
	$(STRIP) --strip-debug $@

# What has probes tells of them when it is loaded.
$(OUT)/bin/contend: $(OUT)/lib/libthr.so.3
$(OUT)/bin/query: $(OBJ)/pic/$U/usdt/drti.c.o

# dtrace(1) is more than one file.
$(OUT)/sbin/dtrace: $(OBJ)/pic/$U/dtrace/aggregate.c.o

$(OUT)/lib/libc.so.7: $(LIBC_PIC)
	@mkdir -p $(@D)
	$(CC) $(SHARED) -shared -Wl,-soname,$(@F) -o $@ $^
	$(STRIP) --strip-debug $@

$(OUT)/lib/libthr.so.3: $(LIBTHR) $(OUT)/lib/libc.so.7
	@mkdir -p $(@D)
	$(CC) $(SHARED) -shared -Wl,-soname,$(@F) -o $@ $^
	$(STRIP) --strip-debug $@

$(OUT)/libexec/ld-elf.so.1: $(RTLD)
	@mkdir -p $(@D)
	$(CC) $(SHARED) -shared -Wl,-Bsymbolic -Wl,-soname,$(@F) -Wl,-e,rtld_start -o $@ $^
	$(STRIP) --strip-debug $@

$(FILES): $(OUT)/%: %
	@mkdir -p $(@D)
	cp $< $@
	chmod 644 $@

# Neither name nor time in it.
$(PAGES): $(OUT)/%.gz: %
	@mkdir -p $(@D)
	gzip -9nc $< > $@

# Every program's, however it is linked: what a build has left of one that is gone is no harm.
-include $(shell find $(OBJ)/user $(OBJ)/pic $(OBJ)/rtld -name '*.d' 2>/dev/null)
