; A trap asks Python first; only when Python has returned is the exception handed to QEMU.
define void @trap(ptr %uc, i32 %number, ptr %words) {
  switch i32 %number, label %other [ i32 $BREAKPOINT_NUMBER, label %breakpoint ]
breakpoint:
  %unclaimed = call i1 @breakpoint(ptr %words)
  br i1 %unclaimed, label %guest, label %done
other:
  %answer = call i32 inttoptr (i64 $on_trap to ptr)(i32 %number)
  %wanted = icmp ne i32 %answer, 0
  br i1 %wanted, label %guest, label %done
guest:
  call void @deliver(ptr %words)
  ret void
done:
  ret void
}

; An invalid opcode.
define i1 @invalid(ptr %uc, ptr %words) {
  %code = call ptr @env(ptr %words, i64 $X86_ERROR_CODE)
  store i32 0, ptr %code
  %soft = call ptr @env(ptr %words, i64 $X86_IS_INT)
  store i32 0, ptr %soft
  %cpu.pp = getelementptr i64, ptr %words, i64 $CPU
  %cpu = load ptr, ptr %cpu.pp
  %exception = getelementptr i8, ptr %cpu, i64 $CPU_EXCEPTION
  store i32 6, ptr %exception
  %answer = call i32 inttoptr (i64 $on_trap to ptr)(i32 $X86_INVALID_OPCODE)
  %wanted = icmp ne i32 %answer, 0
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
  %rip.p = getelementptr i64, ptr %regs, i64 16
  %rip = load i64, ptr %rip.p
  %after = add i64 %rip, 2
  %rcx.p = getelementptr i64, ptr %regs, i64 1
  store i64 %after, ptr %rcx.p
  %r11.p = getelementptr i64, ptr %regs, i64 11
  store i64 %flags, ptr %r11.p
  %mask.p = call ptr @env(ptr %words, i64 $X86_SFMASK)
  %mask = load i64, ptr %mask.p
  %keep = xor i64 %mask, -1
  %eflags.p = getelementptr i64, ptr %regs, i64 17
  %eflags = load i64, ptr %eflags.p
  %masked = and i64 %eflags, %keep
  store i64 %masked, ptr %eflags.p
  %star.p = call ptr @env(ptr %words, i64 $X86_STAR)
  %star = load i64, ptr %star.p
  %cs.0 = lshr i64 %star, 32
  %cs = and i64 %cs.0, 65532
  %ss = add i64 %cs, 8
  %seg.cs = call ptr @env(ptr %words, i64 $X86_CS)
  %seg.ss = call ptr @env(ptr %words, i64 $X86_SS)
  call void @segment(ptr %seg.cs, i64 %cs, i64 45206424870977535)
  call void @segment(ptr %seg.ss, i64 %ss, i64 54204828032696319)
  %hflags.p = call ptr @env(ptr %words, i64 $X86_HFLAGS)
  %hflags = load i32, ptr %hflags.p
  %ring0 = and i32 %hflags, -4
  store i32 %ring0, ptr %hflags.p
  %lstar.p = call ptr @env(ptr %words, i64 $X86_LSTAR)
  %lstar = load i64, ptr %lstar.p
  %entry = sub i64 %lstar, 2
  store i64 %entry, ptr %rip.p
  ret void
}
define void @segment(ptr %segment, i64 %selector, i64 %limit_flags) {
  store i64 %selector, ptr %segment
  %base = getelementptr i64, ptr %segment, i64 1
  store i64 0, ptr %base
  %rest = getelementptr i64, ptr %segment, i64 2
  store i64 %limit_flags, ptr %rest
  ret void
}
