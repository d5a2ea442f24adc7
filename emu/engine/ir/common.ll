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
  %count.p = getelementptr i64, ptr %words, i64 $BLOCK_COUNT
  store i64 0, ptr %count.p
  %pc.p = call ptr @env(ptr %words, i64 $PC_OFFSET)
  %pc = load i64, ptr %pc.p
  %answer = call i32 inttoptr (i64 $on_breakpoint to ptr)(i64 %pc)
  %wanted = icmp ne i32 %answer, 0
  ret i1 %wanted
}

; At every translated block; told in emu/engine/state.py.
define void @block(ptr %uc, i64 %address, i32 %size, ptr %words) {
  %total.p = getelementptr i64, ptr %words, i64 $TOTAL
  %total = load i64, ptr %total.p
  %block.p = getelementptr i64, ptr %words, i64 $BLOCK
  store i64 %address, ptr %block.p
  %size64 = zext i32 %size to i64
  %size.p = getelementptr i64, ptr %words, i64 $BLOCK_SIZE
  store i64 %size64, ptr %size.p
  %count.p = getelementptr i64, ptr %words, i64 $BLOCK_COUNT
  %soft.p = getelementptr i64, ptr %words, i64 $SOFT
  %soft = load i64, ptr %soft.p
  %soft.due = icmp uge i64 %total, %soft
  %user = icmp sge i64 %address, 0
  %soft.now = and i1 %soft.due, %user
  %hard.p = getelementptr i64, ptr %words, i64 $HARD
  %hard = load i64, ptr %hard.p
  %hard.now = icmp uge i64 %total, %hard
  %now = or i1 %soft.now, %hard.now
  br i1 %now, label %stop, label %space, !prof !0
stop:
  store i64 0, ptr %count.p
  %stopped.p = getelementptr i64, ptr %words, i64 $STOPPED
  store i64 1, ptr %stopped.p
  call i32 inttoptr (i64 $uc_emu_stop to ptr)(ptr %uc)
  ret void
space:
  %rootpp = getelementptr i64, ptr %words, i64 $ROOT_POINTER
  %root.p = load ptr, ptr %rootpp
  %root = load i64, ptr %root.p
  %last.p = getelementptr i64, ptr %words, i64 $ROOT
  %last = load i64, ptr %last.p
  %generation.p = getelementptr i64, ptr %words, i64 $GENERATION
  %same = icmp eq i64 %root, %last
  br i1 %same, label %look, label %switch, !prof !1
switch:
  store i64 %root, ptr %last.p
  %g0 = load i64, ptr %generation.p
  %g1 = add i64 %g0, 1
  store i64 %g1, ptr %generation.p
  br label %look
look:
  %generation = load i64, ptr %generation.p
  %g32 = trunc i64 %generation to i32
  %tag = select i1 %user, i32 %g32, i32 0
  %a1 = lshr i64 %address, 1
  %a2 = lshr i64 %address, 17
  %h0 = xor i64 %a1, %a2
  %h = and i64 %h0, $TABLE_MASK
  %table.p = getelementptr i64, ptr %words, i64 $TABLE
  %table = load ptr, ptr %table.p
  %entry = getelementptr {i64, i32, i32}, ptr %table, i64 %h
  %e.address = load i64, ptr %entry
  %e.tag.p = getelementptr {i64, i32, i32}, ptr %entry, i64 0, i32 1
  %e.tag = load i32, ptr %e.tag.p
  %e.count.p = getelementptr {i64, i32, i32}, ptr %entry, i64 0, i32 2
  %k1 = icmp eq i64 %e.address, %address
  %k2 = icmp eq i32 %e.tag, %tag
  %known = and i1 %k1, %k2
  br i1 %known, label %add, label %ask, !prof !1
ask:
  %tb = alloca {i64, i16, i16}
  call i32 (ptr, i32, ...) inttoptr (i64 $uc_ctl to ptr)(ptr %uc, i32 $TB_REQUEST_CACHE, i64 %address, ptr %tb)
  %tb.count.p = getelementptr {i64, i16, i16}, ptr %tb, i64 0, i32 1
  %tb.count = load i16, ptr %tb.count.p
  %asked = zext i16 %tb.count to i32
  store i64 %address, ptr %entry
  store i32 %tag, ptr %e.tag.p
  store i32 %asked, ptr %e.count.p
  br label %add
add:
  %count = load i32, ptr %e.count.p
  %count64 = zext i32 %count to i64
  store i64 %count64, ptr %count.p
  %sum = add i64 %total, %count64
  store i64 %sum, ptr %total.p
  ret void
}
!0 = !{!"branch_weights", i32 1, i32 100000}
!1 = !{!"branch_weights", i32 100000, i32 1}
