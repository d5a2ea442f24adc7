# Objects for `trapline check --object`: not linked, with debugging information, each also with mistakes (-DBUGGY).
# Those for `trapline race --object` (poke) are there once for each mistake.

MISTAKES := nosync early wide body
HANDLER_MISTAKES := stale forgets unordered target
KINDS := scanner scanner-buggy subr subr-buggy decoder decoder-buggy kprobes kprobes-buggy links links-pic links_other sweep poke \
	$(MISTAKES:%=poke-%) poke_trap $(HANDLER_MISTAKES:%=poke_trap-%)
# The exhibits of the museum whose bug was in C, by the ISA that had it.
EXHIBIT.x86_64 := jump_not_greater loop_count
EXHIBIT.i386 := word_branch loop_count
EXHIBIT.aarch64 := fbt_next_instruction
EXHIBIT.riscv64 := move_as_jump
KINDS += $(foreach name,$(EXHIBIT.$(ISA)),exhibits/$(name) exhibits/$(name)-buggy)
# What systems have on x86 only: a handler of traps in assembly, and fasttrap.
KINDS += $(FAMILY:x86=xol xol-buggy trap trap-buggy illumos_trap illumos_trap-buggy illumos_fbt illumos_fbt-buggy illumos_fasttrap)
OBJECTS := $(KINDS:%=$(OUT)/objects/%.o)

.PHONY: objects
objects: $(OBJECTS)

# The loop of a sweep is no object for tests: it runs billions of times.
$(OUT)/objects/sweep.o: private OBJECT_FLAGS += -O2 -g0

OBJECT_FLAGS := $(filter-out -fno-common,$(COMMON)) -fcommon -O1 -g -gdwarf-4

$(OUT)/objects/%.o: objects/%.c $(wildcard objects/*.h objects/exhibits/*.h)
	@mkdir -p $(@D)
	$(CC) $(OBJECT_FLAGS) -c -o $@ $<

$(OUT)/objects/%-buggy.o: objects/%.c $(wildcard objects/*.h objects/exhibits/*.h)
	@mkdir -p $(@D)
	$(CC) $(OBJECT_FLAGS) -DBUGGY -c -o $@ $<

TRAPS := $(foreach name,trap illumos_trap,$(OUT)/objects/$(name).o $(OUT)/objects/$(name)-buggy.o)
$(TRAPS): $(OUT)/objects/%.o: objects/trap.S objects/illumos_trap.S
	@mkdir -p $(@D)
	$(CC) $(OBJECT_FLAGS) $(if $(findstring buggy,$@),-DBUGGY) -c -o $@ objects/$(subst -buggy,,$*).S

$(OUT)/objects/links-pic.o: objects/links.c
	@mkdir -p $(@D)
	$(CC) $(filter-out -fno-pic -fno-pie -mcmodel%,$(OBJECT_FLAGS)) -fPIC -c -o $@ $<

DEFINED.nosync := -DNOSYNC
DEFINED.early := -DEARLY
DEFINED.wide := -DWIDE
DEFINED.body := -DBODY
DEFINED.stale := -DSTALE
DEFINED.forgets := -DFORGETS
DEFINED.unordered := -DUNORDERED
DEFINED.target := -DTARGET
$(OUT)/objects/poke-%.o: objects/poke.c objects/serialize.h
	@mkdir -p $(@D)
	$(CC) $(OBJECT_FLAGS) $(DEFINED.$*) -c -o $@ $<

$(OUT)/objects/poke_trap-%.o: objects/poke_trap.c objects/decoding.h objects/serialize.h
	@mkdir -p $(@D)
	$(CC) $(OBJECT_FLAGS) $(DEFINED.$*) -c -o $@ $<
