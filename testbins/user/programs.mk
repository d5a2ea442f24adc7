# The programs of the guest: each a file, linked with all of libc, at 0x400000.

U := user
UCFLAGS := $(COMMON) $(USER.$(ISA)) -g0 -I$U/libc -I$K -I$K/$(ISA) -ffunction-sections -fdata-sections
LIBC_SOURCES := $U/libc/$(ISA).S $(sort $(wildcard $U/libc/*.c)) $K/kern/kvprintf.c $K/kern/libkern.c $(wildcard $K/$(ISA)/qdivrem.c)
LIBC := $(patsubst %,$(OBJ)/user/%.o,$(LIBC_SOURCES))
PROGRAMS := $(patsubst $U/%.c,$(OUT)/%,$(sort $(wildcard $U/bin/*.c $U/sbin/*.c)))

# The other files of the initrd, as they are.
FILES := $(patsubst %,$(OUT)/%,$(sort $(wildcard etc/* usr/share/man/*)))

.PHONY: programs
.SECONDARY:
programs: $(PROGRAMS) $(FILES)

$(OBJ)/user/%.o: %
	@mkdir -p $(@D)
	$(CC) $(UCFLAGS) -MMD -c -o $@ $<

$(PROGRAMS): $(OUT)/%: $(OBJ)/user/$U/%.c.o $(LIBC) $U/program.ld
	@mkdir -p $(@D)
	$(CC) $(LINK) $(MACHINE.$(ISA)) -Wl,--gc-sections -Wl,-T,$U/program.ld -o $@ $< $(LIBC)
	$(STRIP) --strip-debug $@

$(FILES): $(OUT)/%: %
	@mkdir -p $(@D)
	cp $< $@
	chmod 644 $@

-include $(LIBC:.o=.d)
