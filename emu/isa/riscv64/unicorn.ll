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
  br i1 %is.system, label %whole, label %compressed
compressed:
  %zero = and i32 %low, $RESERVED_MASK_0
  %is.zero = icmp eq i32 %zero, $RESERVED_0
  %one = and i32 %low, $RESERVED_MASK_1
  %is.one = icmp eq i32 %one, $RESERVED_1
  %is.reserved = or i1 %is.zero, %is.one
  br i1 %is.reserved, label %yes, label %no
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

; Whether an instruction is fmv.w.x or a sign injection of singles (emu/isa/riscv64/corrections.py).
define internal i64 @corrected(i64 %address) {
  %word = call i32 @unboxed_operation(i64 %address)
  %answer = zext i32 %word to i64
  ret i64 %answer
}

; The instruction, if it is one; else 0.
define internal i32 @unboxed_operation(i64 %address) alwaysinline {
  %low = call i32 inttoptr (i64 $cpu_lduw_code to ptr)(ptr inttoptr (i64 $env to ptr), i64 %address)
  %opcode = and i32 %low, 127
  %is.float = icmp eq i32 %opcode, 83
  br i1 %is.float, label %float, label %no
float:
  %next = add i64 %address, 2
  %high = call i32 inttoptr (i64 $cpu_lduw_code to ptr)(ptr inttoptr (i64 $env to ptr), i64 %next)
  %above = shl i32 %high, 16
  %word = or i32 %above, %low
  %move = and i32 %word, $FLOAT_MOVE_MASK
  %is.move = icmp eq i32 %move, $FLOAT_MOVE
  %sign = and i32 %word, $FLOAT_SIGN_MASK
  %is.sign = icmp eq i32 %sign, $FLOAT_SIGN
  %shifted = lshr i32 %word, 12
  %kind = and i32 %shifted, 7
  %valid = icmp ult i32 %kind, 3
  %is.injection = and i1 %is.sign, %valid
  %found = or i1 %is.move, %is.injection
  br i1 %found, label %yes, label %no
yes:
  ret i32 %word
no:
  ret i32 0
}

; Executes it, with the pc; 0: QEMU is to execute it, or it is another one.
define internal i64 @execute_correction(ptr %env, i64 %address) {
  %status.p = getelementptr i8, ptr %env, i64 $FLOAT_STATUS
  %status = load i64, ptr %status.p
  %state = and i64 %status, $FLOAT_DIRTY
  %dirty = icmp eq i64 %state, $FLOAT_DIRTY
  br i1 %dirty, label %decode, label %no
decode:
  %word = call i32 @unboxed_operation(i64 %address)
  %found = icmp ne i32 %word, 0
  br i1 %found, label %execute, label %no
execute:
  %first.p = call ptr @float_register(ptr %env, i32 %word, i32 15)
  %target.p = call ptr @float_register(ptr %env, i32 %word, i32 7)
  %form = and i32 %word, $FLOAT_MOVE_MASK
  %is.move = icmp eq i32 %form, $FLOAT_MOVE
  br i1 %is.move, label %move, label %inject
move:
  %general.p = getelementptr i8, ptr %first.p, i64 $FLOAT_TO_GENERAL
  %general = load i64, ptr %general.p
  br label %store
inject:
  %first.boxed = load i64, ptr %first.p
  %first = call i64 @unboxed(i64 %first.boxed)
  %second.p = call ptr @float_register(ptr %env, i32 %word, i32 20)
  %second.boxed = load i64, ptr %second.p
  %second = call i64 @unboxed(i64 %second.boxed)
  %shifted = lshr i32 %word, 12
  %kind = and i32 %shifted, 7
  %is.negated = icmp eq i32 %kind, 1
  %is.multiplied = icmp eq i32 %kind, 2
  %other = select i1 %is.multiplied, i64 %first, i64 0
  %changed = select i1 %is.negated, i64 2147483648, i64 %other
  %signs = xor i64 %second, %changed
  %sign = and i64 %signs, 2147483648
  %size = and i64 %first, 2147483647
  %injected = or i64 %size, %sign
  br label %store
store:
  %value = phi i64 [ %general, %move ], [ %injected, %inject ]
  %boxed = or i64 %value, -4294967296
  store i64 %boxed, ptr %target.p
  %behind = add i64 %address, 4
  %pc.p = getelementptr i8, ptr %env, i64 $PC_OFFSET
  store i64 %behind, ptr %pc.p
  ret i64 1
no:
  ret i64 0
}

; The floating-point register whose number is in a word, so many bits up.
define internal ptr @float_register(ptr %env, i32 %word, i32 %bits) alwaysinline {
  %shifted = lshr i32 %word, %bits
  %number = and i32 %shifted, 31
  %registers = getelementptr i8, ptr %env, i64 $FLOAT_REGISTERS
  %register = getelementptr i64, ptr %registers, i32 %number
  ret ptr %register
}

define internal i64 @unboxed(i64 %value) alwaysinline {
  %boxed = icmp uge i64 %value, -4294967296
  %low = and i64 %value, 4294967295
  %single = select i1 %boxed, i64 %low, i64 $CANONICAL_NAN
  ret i64 %single
}
