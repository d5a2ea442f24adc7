; Called at every translated block; see emu/engine/state.py.  The first time that a block runs, its count is written into
; it (emu/engine/qemu/inlined_count.py), and this is not called again.  If that is not possible, the table has the counts.
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

; The block will run: add its instructions, note which it is, and tell the function that wants to know each block.
define internal void @run(ptr %entry, i64 %total) alwaysinline {
  %count.p = getelementptr {i64, i32, i32}, ptr %entry, i64 0, i32 1
  %count = load i32, ptr %count.p
  %count64 = zext i32 %count to i64
  %sum = add i64 %total, %count64
  call void @set_word(i64 $TOTAL, i64 %sum)
  %block = ptrtoint ptr %entry to i64
  call void @set_word(i64 $BLOCK, i64 %block)
  %at.block = call i64 @word(i64 $AT_BLOCK)
  %alone = icmp eq i64 %at.block, 0
  br i1 %alone, label %done, label %tell
tell:
  %told = inttoptr i64 %at.block to ptr
  call void %told(ptr %entry)
  br label %done
done:
  ret void
}

; Stops the run before the block at %address if a deadline is due.
define internal i1 @stopped(i64 %address, i64 %total) noinline {
start:
  br label %look
look:
  %hard = call i64 @word(i64 $HARD)
  %hard.due = icmp uge i64 %total, %hard
  %soft = call i64 @word(i64 $SOFT)
  %soft.due = icmp uge i64 %total, %soft
  %user = icmp ult i64 %address, $KERNEL_START
  %soft.now = and i1 %soft.due, %user
  %now = or i1 %hard.due, %soft.now
  br i1 %now, label %due, label %go
due:
  %moved = call i1 @moved(i64 %total)
  br i1 %moved, label %look, label %stop
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

; Moves the deadlines by the instructions that their clock has hidden since they were computed; false if it cannot, or
; if there are none.
define internal i1 @moved(i64 %total) alwaysinline {
  %clock = call i64 @word(i64 $CLOCK)
  %fixed = icmp eq i64 %clock, 0
  %next = call i64 @word(i64 $NEXT)
  %asked = icmp eq i64 %next, 0
  %neither = or i1 %fixed, %asked
  br i1 %neither, label %no, label %look
look:
  %clock.p = inttoptr i64 %clock to ptr
  %skipped.p = getelementptr i64, ptr %clock.p, i64 $CLOCK_SKIPPED
  %skipped = load i64, ptr %skipped.p
  %skipped.then = call i64 @word(i64 $SKIPPED)
  %passed = icmp ne i64 %skipped, %skipped.then
  %known.p = getelementptr i64, ptr %clock.p, i64 $CLOCK_HIDDEN
  %known = load i64, ptr %known.p
  ; While the clock stands still, what is executed is hidden.
  %paused.p = getelementptr i64, ptr %clock.p, i64 $CLOCK_PAUSED
  %paused = load i64, ptr %paused.p
  %now = sub i64 %total, $PREPAID
  %since = sub i64 %now, %paused
  %stands.p = getelementptr i64, ptr %clock.p, i64 $CLOCK_STANDS
  %stands = load i64, ptr %stands.p
  %runs = icmp eq i64 %stands, 0
  %more = select i1 %runs, i64 0, i64 %since
  %hidden = add i64 %known, %more
  %hidden.then = call i64 @word(i64 $HIDDEN)
  %distance = sub i64 %hidden, %hidden.then
  %not.later = icmp sle i64 %distance, 0
  %final = or i1 %passed, %not.later
  br i1 %final, label %no, label %move
move:
  call void @set_word(i64 $HIDDEN, i64 %hidden)
  %soft = call i64 @word(i64 $SOFT)
  %soft.moved = add i64 %soft, %distance
  call void @set_word(i64 $SOFT, i64 %soft.moved)
  %hard = call i64 @word(i64 $HARD)
  %hard.moved = add i64 %hard, %distance
  call void @set_word(i64 $HARD, i64 %hard.moved)
  %soft.first = icmp ult i64 %soft.moved, %hard.moved
  %first = select i1 %soft.first, i64 %soft.moved, i64 %hard.moved
  call void @set_word(i64 $NEXT, i64 %first)
  ret i1 true
no:
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

; The bytes of the block at %address, which Unicorn has translated.
define internal i64 @block_size(i64 %uc, i64 %address) noinline {
  %tb = alloca {i64, i16, i16}
  %uc.p = inttoptr i64 %uc to ptr
  call i32 (ptr, i32, ...) inttoptr (i64 $uc_ctl to ptr)(ptr %uc.p, i32 $TB_REQUEST_CACHE, i64 %address, ptr %tb)
  %size.p = getelementptr {i64, i16, i16}, ptr %tb, i64 0, i32 2
  %size = load i16, ptr %size.p
  %size64 = zext i16 %size to i64
  ret i64 %size64
}

define internal void @describe(ptr %entry, i64 %address, i32 %count, i32 %size) {
  store i64 %address, ptr %entry
  %count.p = getelementptr {i64, i32, i32}, ptr %entry, i64 0, i32 1
  store i32 %count, ptr %count.p
  %size.p = getelementptr {i64, i32, i32}, ptr %entry, i64 0, i32 2
  store i32 %size, ptr %size.p
  ret void
}
