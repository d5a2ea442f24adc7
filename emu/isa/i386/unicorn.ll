; The callbacks of i386; emu/isa/i386/unicorn.py has the same in Python.

; An invalid opcode, which may be a breakpoint.  It ended its block, of which it was counted as an instruction.
define i1 @invalid(ptr %uc, ptr %words) {
  call void @undefined(ptr %words)
  ret i1 true
}

; Before an instruction that Unicorn would execute and the CPU refuses (emu/engine/qemu/ud_hooks.py): #UD, and away from here.
define i64 @refused(ptr %uc, i64 %address, i32 %size, ptr %words) {
  %eip.p = call ptr @env(ptr %words, i64 $PC_OFFSET)
  store i64 %address, ptr %eip.p
  %block.p = getelementptr i64, ptr %words, i64 $BLOCK
  %entry = load ptr, ptr %block.p
  %none = icmp eq ptr %entry, null
  br i1 %none, label %settled, label %look
look:
  %start = load i64, ptr %entry
  %first = icmp eq i64 %start, %address
  br i1 %first, label %all, label %further
all:
  ; The block begins with it: of the counted instructions only this one remains.
  %count.p = getelementptr {i64, i32, i32}, ptr %entry, i64 0, i32 1
  %count = load i32, ptr %count.p
  %count64 = zext i32 %count to i64
  %total.p = getelementptr i64, ptr %words, i64 $TOTAL
  %total = load i64, ptr %total.p
  %less = sub i64 %total, %count64
  %one = add i64 %less, 1
  store i64 %one, ptr %total.p
  br label %settled
further:
  ; lock ret ends its block: all of it remains counted.
  %size.p = getelementptr {i64, i32, i32}, ptr %entry, i64 0, i32 2
  %bytes = load i32, ptr %size.p
  %bytes64 = zext i32 %bytes to i64
  %end = add i64 %start, %bytes64
  %size64 = zext i32 %size to i64
  %next = add i64 %address, %size64
  %last = icmp eq i64 %next, %end
  br i1 %last, label %settled, label %inside
inside:
  call void inttoptr (i64 $on_inside to ptr)()
  br label %settled
settled:
  call void @undefined(ptr %words)
  ; QEMU has no current exception. The answer: the rest of the block must not run.
  %cpu.pp = getelementptr i64, ptr %words, i64 $CPU
  %cpu = load ptr, ptr %cpu.pp
  %exception.p = getelementptr i8, ptr %cpu, i64 $CPU_EXCEPTION
  store i32 -1, ptr %exception.p
  ret i64 1
}

; The instruction at eip has been counted.
define internal void @undefined(ptr %words) {
  %eip.p = call ptr @env(ptr %words, i64 $PC_OFFSET)
  %eip = load i64, ptr %eip.p
  %unclaimed = call i1 @breakpoint(ptr %words)
  br i1 %unclaimed, label %exception, label %done
exception:
  %kernel = icmp uge i64 %eip, $KERNEL_START
  br i1 %kernel, label %ask, label %uncount
uncount:
  %total.p = getelementptr i64, ptr %words, i64 $TOTAL
  %total = load i64, ptr %total.p
  %before = sub i64 %total, 1
  store i64 %before, ptr %total.p
  br label %ask
ask:
  %wanted = call i1 @invalid_opcode(ptr %words)
  br i1 %wanted, label %guest, label %done
guest:
  call void @deliver(ptr %words)
  ret void
done:
  ret void
}
