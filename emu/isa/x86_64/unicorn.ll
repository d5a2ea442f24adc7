; The callbacks of x86-64; emu/isa/x86_64/unicorn.py has the same in Python.

; An invalid opcode.
define i1 @invalid(ptr %uc, ptr %words) {
  %wanted = call i1 @invalid_opcode(ptr %words)
  br i1 %wanted, label %guest, label %done
guest:
  call void @deliver(ptr %words)
  ret i1 true
done:
  ret i1 true
}

; SYSCALL as the Intel SDM describes it; Unicorn leaves the entry to its user.  rip gets the instruction's length added afterwards.
define void @system_call(ptr %uc, ptr %words) {
  %flags.p = alloca i64
  store i64 0, ptr %flags.p
  call i32 inttoptr (i64 $uc_reg_read to ptr)(ptr %uc, i32 $X86_EFLAGS_ID, ptr %flags.p)
  %flags = load i64, ptr %flags.p
  %regs = call ptr @env(ptr %words, i64 0)
  %rip.p = getelementptr i64, ptr %regs, i64 $RIP
  %rip = load i64, ptr %rip.p
  %after = add i64 %rip, $SYSCALL_LENGTH
  %rcx.p = getelementptr i64, ptr %regs, i64 $RCX
  store i64 %after, ptr %rcx.p
  %r11.p = getelementptr i64, ptr %regs, i64 $R11
  store i64 %flags, ptr %r11.p
  %mask.p = call ptr @env(ptr %words, i64 $X86_SFMASK)
  %mask = load i64, ptr %mask.p
  %keep = xor i64 %mask, -1
  %eflags.p = getelementptr i64, ptr %regs, i64 $RFLAGS
  %eflags = load i64, ptr %eflags.p
  %masked = and i64 %eflags, %keep
  store i64 %masked, ptr %eflags.p
  %star.p = call ptr @env(ptr %words, i64 $X86_STAR)
  %star = load i64, ptr %star.p
  %cs.0 = lshr i64 %star, 32
  %cs = and i64 %cs.0, $SYSCALL_SELECTOR
  %ss = add i64 %cs, 8
  %seg.cs = call ptr @env(ptr %words, i64 $X86_CS)
  %seg.ss = call ptr @env(ptr %words, i64 $X86_SS)
  call void @segment(ptr %seg.cs, i64 %cs, i64 $SYSCALL_CODE_SEGMENT)
  call void @segment(ptr %seg.ss, i64 %ss, i64 $SYSCALL_STACK_SEGMENT)
  %hflags.p = call ptr @env(ptr %words, i64 $X86_HFLAGS)
  %hflags = load i32, ptr %hflags.p
  %ring0 = and i32 %hflags, -4
  store i32 %ring0, ptr %hflags.p
  %lstar.p = call ptr @env(ptr %words, i64 $X86_LSTAR)
  %lstar = load i64, ptr %lstar.p
  %entry = sub i64 %lstar, $SYSCALL_LENGTH
  store i64 %entry, ptr %rip.p
  ret void
}

; A segment register: its selector, base 0, and the limit and the flags in one word.
define internal void @segment(ptr %segment, i64 %selector, i64 %limit.flags) {
  store i64 %selector, ptr %segment
  %base = getelementptr i64, ptr %segment, i64 1
  store i64 0, ptr %base
  %rest = getelementptr i64, ptr %segment, i64 2
  store i64 %limit.flags, ptr %rest
  ret void
}

; Whether an instruction is cmpxchg of 32 bits (emu/isa/x86_64/corrections.py).
define internal i64 @corrected(i64 %start) {
entry:
  %end = add i64 %start, 14
  br label %byte
byte:
  %at = phi i64 [ %start, %entry ], [ %behind, %prefix ]
  %wide = phi i1 [ false, %entry ], [ %wide.now, %prefix ]
  %first = call i32 @code(i64 %at)
  %behind = add i64 %at, 1
  switch i32 %first, label %other [
    i32 15, label %escape
    i32 38, label %prefix  i32 46, label %prefix  i32 54, label %prefix  i32 62, label %prefix  i32 100, label %prefix
    i32 101, label %prefix  i32 103, label %prefix  i32 240, label %prefix  i32 242, label %prefix
    i32 243, label %prefix
  ]
other:
  %high = and i32 %first, 240
  %is.rex = icmp eq i32 %high, $REX
  br i1 %is.rex, label %prefix, label %no
prefix:
  ; REX.W, if no other prefix follows
  %rex.w = or i32 $REX, 8
  %bits = and i32 %first, 248
  %wide.now = icmp eq i32 %bits, %rex.w
  %too.many = icmp uge i64 %at, %end
  br i1 %too.many, label %no, label %byte
escape:
  br i1 %wide, label %no, label %opcode
opcode:
  %second = call i32 @code(i64 %behind)
  %found = icmp eq i32 %second, 177
  br i1 %found, label %yes, label %no
yes:
  ret i64 1
no:
  ret i64 0
}

; Whether it would clear what is in the upper half of rax.
define internal i64 @correction_needed(ptr %env, i64 %address) alwaysinline {
  %rax.p = getelementptr i64, ptr %env, i64 $RAX
  %rax = load i64, ptr %rax.p
  %upper = lshr i64 %rax, 32
  ret i64 %upper
}
