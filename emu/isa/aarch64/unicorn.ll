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
