; The callbacks of AArch64; emu/isa/aarch64/emulated.py has the same in Python.

; Whether the instruction at an address is emulated: 0 if it is, 1 if not.
define i32 @emulated(ptr %key, ptr %node, ptr %data) {
  %address = load i64, ptr %key
  %word = call i32 inttoptr (i64 $cpu_ldl_code to ptr)(ptr inttoptr (i64 $env to ptr), i64 %address)
  %read = and i32 %word, -32
  switch i32 %read, label %no [ i32 $MRS_CNTVCT, label %yes  i32 $MRS_CNTPCT, label %physical ]
physical:
  ; Programs may not read that one; the CPU raises the exception.
  %pstate.p = getelementptr i8, ptr inttoptr (i64 $env to ptr), i64 $ARM64_PSTATE
  %pstate = load i32, ptr %pstate.p
  %level = and i32 %pstate, 12
  %program = icmp eq i32 %level, 0
  br i1 %program, label %no, label %yes
yes:
  ret i32 0
no:
  ret i32 1
}

; What QEMU's translation depends on besides the code (emu/engine/qemu/jump_cache.py): the exception level and
; registers of the system, which a program of the host's cannot change.
define internal i64 @translation_key(ptr %env) alwaysinline {
  ret i64 0
}

; Whether an instruction is ldar, ldarh, stlr or stlrh (emu/isa/aarch64/corrections.py).
define internal i64 @corrected(i64 %address) {
  %word = call i32 inttoptr (i64 $cpu_ldl_code to ptr)(ptr inttoptr (i64 $env to ptr), i64 %address)
  %form = and i32 %word, $ORDERED_MASK
  %ordered = icmp eq i32 %form, $ORDERED
  %size = lshr i32 %word, 30
  %more = icmp ne i32 %size, 0
  %found = and i1 %ordered, %more
  %answer = zext i1 %found to i64
  ret i64 %answer
}

; Whether its address is not aligned.
define internal i64 @correction_needed(ptr %env, i64 %address) {
  %word = call i32 inttoptr (i64 $cpu_ldl_code to ptr)(ptr %env, i64 %address)
  %size = lshr i32 %word, 30
  %bytes = shl i32 1, %size
  %below = sub i32 %bytes, 1
  %mask = zext i32 %below to i64
  %shifted = lshr i32 %word, 5
  %number = and i32 %shifted, 31
  %registers = getelementptr i8, ptr %env, i64 $XREGS
  %register = getelementptr i64, ptr %registers, i32 %number
  %place = load i64, ptr %register
  %rest = and i64 %place, %mask
  ret i64 %rest
}
