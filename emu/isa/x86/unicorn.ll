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

; Whether the instruction at an address is emulated (emu/isa/x86/emulated.py): 0 if it is, 1 if not.  No byte is read that
; the instruction does not have: the next page may not be there.
define i32 @emulated(ptr %key, ptr %node, ptr %data) {
entry:
  %start = load i64, ptr %key
  %end = add i64 %start, 14
  br label %byte
byte:
  %at = phi i64 [ %start, %entry ], [ %behind, %prefix ]
  %locked = phi i1 [ false, %entry ], [ %locked.now, %prefix ]
  %repeat = phi i1 [ false, %entry ], [ %repeat.now, %prefix ]
  %big = phi i1 [ false, %entry ], [ %big.now, %prefix ]
  %sized = phi i1 [ false, %entry ], [ %sized.now, %prefix ]
  %streaming = phi i1 [ false, %entry ], [ %streaming.now, %prefix ]
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
  %is.sized = icmp eq i32 %first, 102
  %sized.now = or i1 %sized, %is.sized
  ; f2 or f3
  %repeat.bits = and i32 %first, 254
  %is.streaming = icmp eq i32 %repeat.bits, 242
  %streaming.now = or i1 %streaming, %is.streaming
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
    i32 120, label %user  i32 121, label %user
    i32 43, label %stream  i32 174, label %group15
    i32 1, label %group7
    i32 199, label %group9
    i32 163, label %bit.test  i32 171, label %bit.test  i32 179, label %bit.test  i32 187, label %bit.test
    i32 186, label %bit.test
  ]
stream:
  br i1 %streaming, label %user, label %escaped
group15:
  %marked = or i1 %sized, %streaming
  br i1 %marked, label %marked15, label %escaped
marked15:
  %modrm15 = call i32 @code(i64 %third.at)
  %bits15 = and i32 %modrm15, 248
  %waits = icmp eq i32 %bits15, 240
  br i1 %waits, label %user, label %escaped
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
  switch i32 %first, label %no.feature [
    i32 143, label %one.of.group  i32 198, label %one.of.group  i32 199, label %one.of.group
    i32 196, label %vex  i32 197, label %vex
  ]
one.of.group:
  ; XOP, xabort and xbegin have another reg field than pop and mov.
  %group.modrm = call i32 @code(i64 %behind)
  %group.reg = and i32 %group.modrm, 56
  %is.other = icmp ne i32 %group.reg, 0
  br i1 %is.other, label %user, label %no.feature
vex:
  %vex.second = call i32 @code(i64 %behind)
  %is.vex = icmp uge i32 %vex.second, $X86_VEX
  br i1 %is.vex, label %is.bmi, label %no.feature
is.bmi:
  %vex.map = and i32 %vex.second, 31
  %two.bytes = icmp eq i32 %first, 197
  %map.or.none = select i1 %two.bytes, i32 0, i32 %vex.map
  switch i32 %map.or.none, label %user [ i32 2, label %bmi  i32 3, label %rorx ]
bmi:
  %bmi.at = add i64 %at, 3
  %bmi.opcode = call i32 @code(i64 %bmi.at)
  switch i32 %bmi.opcode, label %user [
    i32 242, label %no.feature  i32 243, label %no.feature  i32 245, label %no.feature  i32 246, label %no.feature
    i32 247, label %no.feature
  ]
rorx:
  %rorx.at = add i64 %at, 3
  %rorx.opcode = call i32 @code(i64 %rorx.at)
  %is.rorx = icmp eq i32 %rorx.opcode, 240
  br i1 %is.rorx, label %no.feature, label %user
no.feature:
  ; d9 f0 to f3, f5, f8, f9, fb, fe, ff: the x87 (emu/isa/x86/x87.py)
  %is.x87 = icmp eq i32 %first, 217
  %x87.allowed = xor i1 %locked, true
  %may.be.x87 = and i1 %is.x87, %x87.allowed
  br i1 %may.be.x87, label %x87, label %no.x87
x87:
  %x87.second = call i32 @code(i64 %behind)
  %x87.place = sub i32 %x87.second, 240
  %x87.in.table = icmp ult i32 %x87.place, 16
  br i1 %x87.in.table, label %x87.served, label %no
x87.served:
  %x87.place.16 = trunc i32 %x87.place to i16
  %x87.bit = lshr i16 $X86_X87_SERVED, %x87.place.16
  %x87.serves = trunc i16 %x87.bit to i1
  br i1 %x87.serves, label %x87.on, label %no
x87.on:
  %x87.hflags.p = getelementptr i8, ptr inttoptr (i64 $env to ptr), i64 $X86_HFLAGS
  %x87.hflags = load i32, ptr %x87.hflags.p
  %x87.off = and i32 %x87.hflags, $X86_NO_X87
  %x87.is.on = icmp eq i32 %x87.off, 0
  br i1 %x87.is.on, label %yes, label %no
no.x87:
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

; Whether an instruction reads or replaces exceptions that floating point has accrued (emu/isa/x86/sticky_flags.py).
define internal i64 @accruing(i64 %start) {
entry:
  %end = add i64 %start, 14
  br label %byte
byte:
  %at = phi i64 [ %start, %entry ], [ %behind, %prefix ]
  %first = call i32 @code(i64 %at)
  %behind = add i64 %at, 1
  switch i32 %first, label %other [
    i32 15, label %escape  i32 217, label %d9  i32 219, label %db  i32 221, label %dd  i32 223, label %df
    i32 38, label %prefix  i32 46, label %prefix  i32 54, label %prefix  i32 62, label %prefix  i32 100, label %prefix
    i32 101, label %prefix  i32 102, label %prefix  i32 103, label %prefix  i32 242, label %prefix
    i32 243, label %prefix
  ]
other:
  %high = and i32 %first, 240
  %is.rex = icmp eq i32 %high, $REX
  br i1 %is.rex, label %prefix, label %no
prefix:
  %too.many = icmp uge i64 %at, %end
  br i1 %too.many, label %no, label %byte
escape:
  %second = call i32 @code(i64 %behind)
  %is.group = icmp eq i32 %second, 174
  br i1 %is.group, label %group, label %no
group:
  %modrm.at = add i64 %at, 2
  %modrm = call i32 @code(i64 %modrm.at)
  %in.memory = icmp ult i32 %modrm, 192
  br i1 %in.memory, label %yes, label %no
d9:
  ; reg 4 or 6, in memory
  %modrm.d9 = call i32 @code(i64 %behind)
  %field.d9 = and i32 %modrm.d9, 40
  %even.d9 = icmp eq i32 %field.d9, 32
  %memory.d9 = icmp ult i32 %modrm.d9, 192
  %is.d9 = and i1 %even.d9, %memory.d9
  br i1 %is.d9, label %yes, label %no
dd:
  ; reg 4, 6 or 7, in memory
  %modrm.dd = call i32 @code(i64 %behind)
  %field.dd = and i32 %modrm.dd, 56
  %upper.dd = icmp uge i32 %field.dd, 32
  %not.5.dd = icmp ne i32 %field.dd, 40
  %fits.dd = and i1 %upper.dd, %not.5.dd
  %memory.dd = icmp ult i32 %modrm.dd, 192
  %is.dd = and i1 %fits.dd, %memory.dd
  br i1 %is.dd, label %yes, label %no
db:
  %modrm.db = call i32 @code(i64 %behind)
  %pair.db = and i32 %modrm.db, 254
  %is.db = icmp eq i32 %pair.db, 226
  br i1 %is.db, label %yes, label %no
df:
  %modrm.df = call i32 @code(i64 %behind)
  %is.df = icmp eq i32 %modrm.df, 224
  br i1 %is.df, label %yes, label %no
yes:
  ret i64 1
no:
  ret i64 0
}

define internal void @merge_accrued(ptr %env) {
  %sse.p = getelementptr i8, ptr %env, i64 $X86_SSE_FLAGS
  %sse = load i8, ptr %sse.p
  store i8 0, ptr %sse.p
  %sse.32 = zext i8 %sse to i32
  %same = and i32 %sse.32, 61
  %flushed = and i32 %sse.32, 128
  %was.flushed = icmp ne i32 %flushed, 0
  %more = select i1 %was.flushed, i32 48, i32 0
  %mxcsr.p = getelementptr i8, ptr %env, i64 $X86_MXCSR
  %mxcsr = load i32, ptr %mxcsr.p
  %some = or i32 %mxcsr, %same
  %all = or i32 %some, %more
  store i32 %all, ptr %mxcsr.p
  %x87.p = getelementptr i8, ptr %env, i64 $X86_X87_FLAGS
  %x87 = load i8, ptr %x87.p
  store i8 0, ptr %x87.p
  %x87.16 = zext i8 %x87 to i16
  %x87.same = and i16 %x87.16, 61
  %status.p = getelementptr i8, ptr %env, i64 $X86_FPUS
  %status = load i16, ptr %status.p
  %now = or i16 %status, %x87.same
  %control.p = getelementptr i8, ptr %env, i64 $X86_FPUC
  %control = load i16, ptr %control.p
  %wanted = xor i16 %control, -1
  %raised = and i16 %now, %wanted
  %exceptions = and i16 %raised, 63
  %any = icmp ne i16 %exceptions, 0
  %summary = select i1 %any, i16 u0x8080, i16 0
  %complete = or i16 %now, %summary
  store i16 %complete, ptr %status.p
  ret void
}

; Whether LOCK may stand before an opcode (emu/isa/x86/instruction.py); 256 is the map of those behind 0f.  Each opcode has a
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

; What QEMU's translation depends on besides the code (emu/engine/qemu/jump_cache.py): of the flags TF, IOPL, RF, VM and AC, the
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
