; Called at every translated block; see emu/engine/state.py.  The first time that a block runs, its count is written into
; it (emu/engine/inlined.py), and this is not called again.  If that is not possible, the table has the counts.
define void @block(ptr %uc, i64 %address, i32 %size, ptr %marker) {
  %total = call i64 @word(i64 $TOTAL)
  %next = call i64 @word(i64 $NEXT)
  %early = icmp ult i64 %total, %next
  br i1 %early, label %go, label %late
late:
  %stopped = call i1 @stopped(i64 %address, i64 %total)
  br i1 %stopped, label %done, label %go
go:
  %code = call ptr @llvm.returnaddress(i32 0)
  call void @entered(ptr %code)
  %free = call i64 @word(i64 $FREE)
  %full = icmp eq i64 %free, 0
  br i1 %full, label %remember, label %write
write:
  %new = inttoptr i64 %free to ptr
  %written = call i1 @write(ptr %uc, ptr %code, ptr %new, i64 %address, i32 %size)
  br i1 %written, label %taken, label %remember
taken:
  %following = add i64 %free, $WRITTEN_SIZE
  %end = call i64 @word(i64 $FREE_END)
  %last = icmp uge i64 %following, %end
  %rest = select i1 %last, i64 0, i64 %following
  call void @set_word(i64 $FREE, i64 %rest)
  call void @run(ptr %new, i64 %total)
  ret void
remember:
  %entry = call ptr @entry(i64 %address)
  %known = load i64, ptr %entry
  %same = icmp eq i64 %known, %address
  br i1 %same, label %count.it, label %ask
ask:
  %answer = call i32 @asked(ptr %uc, i64 %address)
  call void @describe(ptr %entry, i64 %address, i32 %answer, i32 %size)
  br label %count.it
count.it:
  call void @run(ptr %entry, i64 %total)
  ret void
done:
  ret void
}

declare ptr @llvm.returnaddress(i32)

define internal i64 @word(i64 %number) alwaysinline {
  %word.p = getelementptr i64, ptr inttoptr (i64 $words to ptr), i64 %number
  %word = load i64, ptr %word.p
  ret i64 %word
}

define internal void @set_word(i64 %number, i64 %value) alwaysinline {
  %word.p = getelementptr i64, ptr inttoptr (i64 $words to ptr), i64 %number
  store i64 %value, ptr %word.p
  ret void
}

; The entry of a block in the table: user blocks in its first half, kernel blocks in the second.
define internal ptr @entry(i64 %address) alwaysinline {
  %a1 = lshr i64 %address, 1
  %a2 = lshr i64 %address, 17
  %mixed = xor i64 %a1, %a2
  %low = and i64 %mixed, $TABLE_MASK
  %is.kernel = icmp uge i64 %address, $KERNEL_START
  %kernel = zext i1 %is.kernel to i64
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
  call void @set_word(i64 $TOTAL, i64 %sum)
  %block = ptrtoint ptr %entry to i64
  call void @set_word(i64 $BLOCK, i64 %block)
  ret void
}

; Stops the run before the block at %address if a deadline is due.
define internal i1 @stopped(i64 %address, i64 %total) noinline {
  %hard = call i64 @word(i64 $HARD)
  %hard.due = icmp uge i64 %total, %hard
  %soft = call i64 @word(i64 $SOFT)
  %soft.due = icmp uge i64 %total, %soft
  %user = icmp ult i64 %address, $KERNEL_START
  %soft.now = and i1 %soft.due, %user
  %now = or i1 %hard.due, %soft.now
  br i1 %now, label %stop, label %go
stop:
  call void @set_word(i64 $BLOCK, i64 0)
  call void @set_word(i64 $STOPPED, i64 1)
  %handle = call i64 @word(i64 $UC)
  %uc = inttoptr i64 %handle to ptr
  call i32 inttoptr (i64 $uc_emu_stop to ptr)(ptr %uc)
  ret i1 true
go:
  ret i1 false
}

; The number of instructions in the block at %address, which Unicorn has just translated.
define internal i32 @asked(ptr %uc, i64 %address) noinline {
  %tb = alloca {i64, i16, i16}
  call i32 (ptr, i32, ...) inttoptr (i64 $uc_ctl to ptr)(ptr %uc, i32 $TB_REQUEST_CACHE, i64 %address, ptr %tb)
  %count.p = getelementptr {i64, i16, i16}, ptr %tb, i64 0, i32 1
  %count = load i16, ptr %count.p
  %count32 = zext i16 %count to i32
  ret i32 %count32
}

define internal void @describe(ptr %entry, i64 %address, i32 %count, i32 %size) {
  store i64 %address, ptr %entry
  %count.p = getelementptr {i64, i32, i32}, ptr %entry, i64 0, i32 1
  store i32 %count, ptr %count.p
  %size.p = getelementptr {i64, i32, i32}, ptr %entry, i64 0, i32 2
  store i32 %size, ptr %size.p
  ret void
}
