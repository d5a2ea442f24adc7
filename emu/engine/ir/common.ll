; Shared by all ISAs.  Names after a dollar sign are put in by emu/engine/native.py: words of emu/engine/state.py,
; offsets of emu/engine/layout.py, addresses of functions.

define void @deliver(ptr %words) {
  %cpu.pp = getelementptr i64, ptr %words, i64 $CPU
  %cpu = load ptr, ptr %cpu.pp
  call void inttoptr (i64 $do_interrupt to ptr)(ptr %cpu)
  ret void
}
define ptr @env(ptr %words, i64 %offset) {
  %env.pp = getelementptr i64, ptr %words, i64 $ENV
  %env = load ptr, ptr %env.pp
  %field = getelementptr i8, ptr %env, i64 %offset
  ret ptr %field
}

; A breakpoint ends its block, and counts as the instruction it displaced: nothing of the block is to be taken back.
define i1 @breakpoint(ptr %words) {
  %block.p = getelementptr i64, ptr %words, i64 $BLOCK
  store i64 0, ptr %block.p
  %pc.p = call ptr @env(ptr %words, i64 $PC_OFFSET)
  %pc = load i64, ptr %pc.p
  %answer = call i32 inttoptr (i64 $on_breakpoint to ptr)(i64 %pc)
  %wanted = icmp ne i32 %answer, 0
  ret i1 %wanted
}

; At every translated block; told in emu/engine/state.py.  What usually happens takes eighteen instructions.
define void @block(ptr %uc, i64 %address, i32 %size, ptr %words) {
  %entry = call ptr @entry(i64 %address)
  %known = load i64, ptr %entry
  %same = icmp eq i64 %known, %address
  %total.p = getelementptr i64, ptr inttoptr (i64 $words to ptr), i64 $TOTAL
  %total = load i64, ptr %total.p
  %next.p = getelementptr i64, ptr inttoptr (i64 $words to ptr), i64 $NEXT
  %next = load i64, ptr %next.p
  %early = icmp ult i64 %total, %next
  %usual = and i1 %same, %early
  br i1 %usual, label %count, label %rest, !prof !0
count:
  call void @run(ptr %entry, i64 %total)
  ret void
rest:
  tail call void @unusual(ptr %uc, i64 %address, i32 %size, ptr %words)
  ret void
}

; The entry of a block in the table: kernel blocks in the upper half, user blocks in the lower.
define internal ptr @entry(i64 %address) alwaysinline {
  %a1 = lshr i64 %address, 1
  %a2 = lshr i64 %address, 17
  %mixed = xor i64 %a1, %a2
  %low = and i64 %mixed, $TABLE_MASK
  %kernel = lshr i64 %address, 63
  %high = shl i64 %kernel, $TABLE_BITS
  %index = or i64 %low, %high
  %entry = getelementptr {i64, i32, i32}, ptr inttoptr (i64 $table to ptr), i64 %index
  ret ptr %entry
}

; The block will run: add its instructions, and note which it is.
define internal void @run(ptr %entry, i64 %total) alwaysinline {
  %count.p = getelementptr {i64, i32, i32}, ptr %entry, i64 0, i32 1
  %count = load i32, ptr %count.p
  %count64 = zext i32 %count to i64
  %sum = add i64 %total, %count64
  %total.p = getelementptr i64, ptr inttoptr (i64 $words to ptr), i64 $TOTAL
  store i64 %sum, ptr %total.p
  %block.p = getelementptr i64, ptr inttoptr (i64 $words to ptr), i64 $BLOCK
  store ptr %entry, ptr %block.p
  ret void
}

; A deadline may be due, or the block is not in the table.
define internal void @unusual(ptr %uc, i64 %address, i32 %size, ptr %words) noinline {
  %total.p = getelementptr i64, ptr inttoptr (i64 $words to ptr), i64 $TOTAL
  %total = load i64, ptr %total.p
  %hard.p = getelementptr i64, ptr inttoptr (i64 $words to ptr), i64 $HARD
  %hard = load i64, ptr %hard.p
  %hard.due = icmp uge i64 %total, %hard
  %soft.p = getelementptr i64, ptr inttoptr (i64 $words to ptr), i64 $SOFT
  %soft = load i64, ptr %soft.p
  %soft.due = icmp uge i64 %total, %soft
  %user = icmp sge i64 %address, 0
  %soft.now = and i1 %soft.due, %user
  %now = or i1 %hard.due, %soft.now
  br i1 %now, label %stop, label %look
stop:
  %block.p = getelementptr i64, ptr inttoptr (i64 $words to ptr), i64 $BLOCK
  store i64 0, ptr %block.p
  %stopped.p = getelementptr i64, ptr inttoptr (i64 $words to ptr), i64 $STOPPED
  store i64 1, ptr %stopped.p
  call i32 inttoptr (i64 $uc_emu_stop to ptr)(ptr %uc)
  ret void
look:
  %entry = call ptr @entry(i64 %address)
  %known = load i64, ptr %entry
  %same = icmp eq i64 %known, %address
  br i1 %same, label %count, label %ask
ask:
  %tb = alloca {i64, i16, i16}
  call i32 (ptr, i32, ...) inttoptr (i64 $uc_ctl to ptr)(ptr %uc, i32 $TB_REQUEST_CACHE, i64 %address, ptr %tb)
  %tb.count.p = getelementptr {i64, i16, i16}, ptr %tb, i64 0, i32 1
  %tb.count = load i16, ptr %tb.count.p
  %asked = zext i16 %tb.count to i32
  store i64 %address, ptr %entry
  %e.count.p = getelementptr {i64, i32, i32}, ptr %entry, i64 0, i32 1
  store i32 %asked, ptr %e.count.p
  %e.size.p = getelementptr {i64, i32, i32}, ptr %entry, i64 0, i32 2
  store i32 %size, ptr %e.size.p
  br label %count
count:
  call void @run(ptr %entry, i64 %total)
  ret void
}
!0 = !{!"branch_weights", i32 100000, i32 1}
