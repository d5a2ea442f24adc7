; The common part of both modes of x86; emu/isa/x86/unicorn.py has the same in Python.

; #UD at the pc; the answer is that of Python: whether the guest gets it.
define internal i1 @invalid_opcode(ptr %words) {
  %code = call ptr @env(ptr %words, i64 $X86_ERROR_CODE)
  store i32 0, ptr %code
  %soft = call ptr @env(ptr %words, i64 $X86_IS_INT)
  store i32 0, ptr %soft
  %cpu.pp = getelementptr i64, ptr %words, i64 $CPU
  %cpu = load ptr, ptr %cpu.pp
  %exception.p = getelementptr i8, ptr %cpu, i64 $CPU_EXCEPTION
  store i32 $X86_INVALID_OPCODE, ptr %exception.p
  %answer = call i32 inttoptr (i64 $on_trap to ptr)(i32 $X86_INVALID_OPCODE)
  %wanted = icmp ne i32 %answer, 0
  ret i1 %wanted
}

; Whether the instruction at an address is special (emu/isa/x86/special.py): 0 if it is, 1 if not.  No byte is read that
; the instruction does not have: the next page may not be there.
define i32 @special(ptr %key, ptr %node, ptr %data) {
entry:
  %start = load i64, ptr %key
  %end = add i64 %start, 14
  br label %byte
byte:
  %at = phi i64 [ %start, %entry ], [ %behind, %prefix ]
  %locked = phi i1 [ false, %entry ], [ %locked.now, %prefix ]
  %repeat = phi i1 [ false, %entry ], [ %repeat.now, %prefix ]
  %big = phi i1 [ false, %entry ], [ %big.now, %prefix ]
  %first = call i32 @code(i64 %at)
  %behind = add i64 %at, 1
  %escape = icmp eq i32 %first, 15
  br i1 %escape, label %opcode, label %no.escape
no.escape:
  %too.many = icmp uge i64 %at, %end
  br i1 %too.many, label %no, label %look
look:
  %high = and i32 %first, 240
  %is.rex = icmp eq i32 %high, $REX
  br i1 %is.rex, label %prefix, label %other
other:
  switch i32 %first, label %plain [
    i32 38, label %prefix  i32 46, label %prefix  i32 54, label %prefix  i32 62, label %prefix  i32 100, label %prefix
    i32 101, label %prefix  i32 102, label %prefix  i32 103, label %prefix  i32 242, label %prefix
    i32 243, label %prefix  i32 240, label %prefix
  ]
prefix:
  %is.lock = icmp eq i32 %first, 240
  %locked.now = or i1 %locked, %is.lock
  %is.repeat = icmp eq i32 %first, 243
  %repeat.now = or i1 %repeat, %is.repeat
  ; REX.B: 90 is then an exchange with r8
  %rex.bits = and i32 %first, 241
  %rex.b = or i32 $REX, 1
  %big.now = icmp eq i32 %rex.bits, %rex.b
  br label %byte
opcode:
  %third.at = add i64 %at, 2
  %second = call i32 @code(i64 %behind)
  switch i32 %second, label %escaped [
    i32 $X86_RDTSC, label %yes  i32 162, label %yes
    i32 51, label %user  i32 52, label %user
    i32 1, label %group7
    i32 199, label %group9
    i32 163, label %bit.test  i32 171, label %bit.test  i32 179, label %bit.test  i32 187, label %bit.test
    i32 186, label %bit.test
  ]
group7:
  %rdtscp = call i32 @code(i64 %third.at)
  %is.rdtscp = icmp eq i32 %rdtscp, 249
  br i1 %is.rdtscp, label %yes, label %escaped
group9:
  %modrm9 = call i32 @code(i64 %third.at)
  %is.rdrand = icmp uge i32 %modrm9, 240
  %is.rdseed = icmp uge i32 %modrm9, 248
  %is.rdpid = and i1 %is.rdseed, %repeat
  %no.rdpid = xor i1 %is.rdpid, true
  %random = and i1 %is.rdrand, %no.rdpid
  br i1 %random, label %yes, label %escaped
bit.test:
  br i1 %locked, label %locked.bit.test, label %escaped
locked.bit.test:
  %modrm = call i32 @code(i64 %third.at)
  %is.register = icmp uge i32 %modrm, 192
  br i1 %is.register, label %yes, label %escaped
escaped:
  br i1 %locked, label %locked.escaped, label %no
locked.escaped:
  %lockable.escaped = call i1 @lockable(i32 %second, i32 256, i64 %third.at)
  br i1 %lockable.escaped, label %no, label %user
plain:
  %is.nop = icmp eq i32 %first, 144
  %repeated.nop = and i1 %is.nop, %repeat
  %not.big = xor i1 %big, true
  %maybe.pause = and i1 %repeated.nop, %not.big
  %not.locked = xor i1 %locked, true
  %is.pause = and i1 %maybe.pause, %not.locked
  br i1 %is.pause, label %pause, label %no.pause
pause:
  %eflags.p = getelementptr i8, ptr inttoptr (i64 $env to ptr), i64 $X86_EFLAGS
  %eflags = load i32, ptr %eflags.p
  %trap.flag = and i32 %eflags, 256
  %is.stepped = icmp ne i32 %trap.flag, 0
  br i1 %is.stepped, label %yes, label %no
no.pause:
  ; in and out: e4 to e7 and ec to ef; ins and outs: 6c to 6f
  %port.bits = and i32 %first, 244
  %is.port = icmp eq i32 %port.bits, 228
  %string.bits = and i32 %first, 252
  %is.string = icmp eq i32 %string.bits, 108
  %is.input = or i1 %is.port, %is.string
  br i1 %is.input, label %user, label %no.port
no.port:
  br i1 %locked, label %locked.plain, label %no
locked.plain:
  %lockable.plain = call i1 @lockable(i32 %first, i32 0, i64 %behind)
  br i1 %lockable.plain, label %no, label %user
user:
  %hflags.p = getelementptr i8, ptr inttoptr (i64 $env to ptr), i64 $X86_HFLAGS
  %hflags = load i32, ptr %hflags.p
  %level = and i32 %hflags, 3
  %is.user = icmp eq i32 %level, 3
  br i1 %is.user, label %yes, label %no
yes:
  ret i32 0
no:
  ret i32 1
}

; Whether LOCK may stand before an opcode (emu/isa/x86/lock.py); 256 is the map of those behind 0f.  Each opcode has a
; mask of what may be in the reg field of its ModRM byte, which is at the address; the operand is in memory.
define internal i1 @lockable(i32 %opcode, i32 %map, i64 %modrm.at) {
entry:
  %index = or i32 %opcode, %map
  switch i32 %index, label %never [
    ; add, or, adc, sbb, and, sub, xor; xchg
    i32 0, label %any  i32 1, label %any  i32 8, label %any  i32 9, label %any  i32 16, label %any
    i32 17, label %any  i32 24, label %any  i32 25, label %any  i32 32, label %any  i32 33, label %any
    i32 40, label %any  i32 41, label %any  i32 48, label %any  i32 49, label %any
    i32 134, label %any  i32 135, label %any
    ; those with an immediate, but for cmp
    i32 128, label %immediate  i32 129, label %immediate  i32 131, label %immediate
    ; not, neg
    i32 246, label %negate  i32 247, label %negate
    ; inc, dec
    i32 254, label %step  i32 255, label %step
    ; cmpxchg, xadd; bts, btr, btc
    i32 432, label %any  i32 433, label %any  i32 448, label %any  i32 449, label %any
    i32 427, label %any  i32 435, label %any  i32 443, label %any
    i32 442, label %bit
    ; cmpxchg8b, cmpxchg16b
    i32 455, label %exchange
  ]
any:
  br label %look
immediate:
  br label %look
negate:
  br label %look
step:
  br label %look
bit:
  br label %look
exchange:
  br label %look
look:
  %mask = phi i32 [ 127, %immediate ], [ 12, %negate ], [ 3, %step ], [ 224, %bit ], [ 2, %exchange ], [ 255, %any ]

  %modrm = call i32 @code(i64 %modrm.at)
  %in.memory = icmp ult i32 %modrm, 192
  %shifted = lshr i32 %modrm, 3
  %field = and i32 %shifted, 7
  %allowing = lshr i32 %mask, %field
  %allowed = trunc i32 %allowing to i1
  %may = and i1 %allowed, %in.memory
  ret i1 %may
never:
  ret i1 false
}

; A byte of code, read as the translator reads it: if there is none, QEMU leaves to its handler of page faults.
define internal i32 @code(i64 %address) {
  %byte = call i32 inttoptr (i64 $cpu_ldub_code to ptr)(ptr inttoptr (i64 $env to ptr), i64 %address)
  ret i32 %byte
}

; What QEMU's translation depends on besides the code (emu/engine/jumps.py): of the flags TF, IOPL, RF, VM and AC, the
; hidden flags, and the base of the code segment.
define internal i64 @translation_key(ptr %env) alwaysinline {
  %eflags.p = getelementptr i8, ptr %env, i64 $X86_EFLAGS
  %eflags = load i32, ptr %eflags.p
  %kept = and i32 %eflags, u0x73100
  %hidden.p = getelementptr i8, ptr %env, i64 $X86_HFLAGS
  %hidden = load i32, ptr %hidden.p
  %flags = or i32 %hidden, %kept
  %flags.64 = zext i32 %flags to i64
  %base.at = add i64 $X86_CS, 8
  %base.p = getelementptr i8, ptr %env, i64 %base.at
  %base = load i32, ptr %base.p
  %base.64 = zext i32 %base to i64
  %upper = shl i64 %base.64, 32
  %key = or i64 %upper, %flags.64
  ret i64 %key
}
