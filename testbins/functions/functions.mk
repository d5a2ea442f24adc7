# Functions that the function guest calls: no entry point, no libc, linked at one address on every ISA (--no-relax: nobody sets gp).

FUNCTIONS := $(patsubst functions/%.c,$(OUT)/functions/%,$(sort $(wildcard functions/*.c)))

.PHONY: functions
functions: $(FUNCTIONS)

$(OUT)/functions/%: functions/%.c
	@mkdir -p $(@D)
	$(CC) $(COMMON) $(LINK) -Wl,-e,0 -Wl,-Ttext-segment=0x10000 -Wl,--no-relax -o $@ $<
