; The callbacks of RISC-V; emu/isa/riscv64/unicorn.py has the same in Python.

; ebreak.
define i1 @invalid(ptr %uc, ptr %words) {
  ; ebreak sets an error that would end the run although the exception was handled.
  %error = getelementptr i8, ptr %uc, i64 $UC_INVALID_ERROR
  store i32 0, ptr %error
  %unclaimed = call i1 @breakpoint(ptr %words)
  br i1 %unclaimed, label %guest, label %done
guest:
  call void @deliver(ptr %words)
  ret i1 true
done:
  ret i1 true
}

; Whether the instruction at an address is emulated (emu/isa/riscv64/emulated.py): 0 if it is, 1 if not.
define i32 @emulated(ptr %key, ptr %node, ptr %data) {
  %address = load i64, ptr %key
  %low = call i32 inttoptr (i64 $cpu_lduw_code to ptr)(ptr inttoptr (i64 $env to ptr), i64 %address)
  %system = and i32 %low, 127
  %is.system = icmp eq i32 %system, 115
  br i1 %is.system, label %whole, label %no
whole:
  %next = add i64 %address, 2
  %high = call i32 inttoptr (i64 $cpu_lduw_code to ptr)(ptr inttoptr (i64 $env to ptr), i64 %next)
  %shifted = shl i32 %high, 16
  %word = or i32 %shifted, %low
  %form = and i32 %word, $CSR_READ_MASK
  %is.read = icmp eq i32 %form, $CSR_READ
  br i1 %is.read, label %csr, label %no
csr:
  %number = lshr i32 %word, 20
  switch i32 %number, label %no [ i32 $CSR_CYCLE, label %yes  i32 $CSR_TIME, label %yes  i32 $CSR_INSTRET, label %yes ]
yes:
  ret i32 0
no:
  ret i32 1
}

; What QEMU's translation depends on besides the code (emu/engine/qemu/jump_cache.py): the privilege, and FS and MPRV of
; mstatus.  A program of the host's changes none of them, since FS is dirty from its start.
define internal i64 @translation_key(ptr %env) alwaysinline {
  ret i64 0
}
