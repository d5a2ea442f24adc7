; The count written into a translated block, for hosts that are x86-64 (emu/engine/qemu/inlined_count.py shows both forms).
; True if the code before %code, which is where @block returns to, is the call that is known, and was replaced.
define internal i1 @write(ptr %uc, ptr %code, ptr %entry, i64 %address, i32 %size) noinline {
look:
  %near = call i1 @bytes8(ptr %code, i64 -5, i8 u0xE8)
  br i1 %near, label %called, label %far
far:
  %through = call i1 @bytes16(ptr %code, i64 -6, i16 u0x15FF)
  br i1 %through, label %called, label %no
called:
  %call.size = phi i64 [ -5, %look ], [ -6, %far ]
  %call = getelementptr i8, ptr %code, i64 %call.size
  ; movabs $$marker,%rcx    mov $$size,%edx
  %rcx = call i1 @bytes16(ptr %call, i64 -10, i16 u0xB948)
  %marker = call i1 @bytes64(ptr %call, i64 -8, i64 $MARKER)
  %edx = call i1 @bytes8(ptr %call, i64 -15, i8 u0xBA)
  %two = and i1 %rcx, %marker
  %three = and i1 %two, %edx
  br i1 %three, label %start.5, label %no
  ; movabs $$uc,%rdi; between it and the size is the address, as 5, 7 or 10 bytes.
start.5:
  %s5 = getelementptr i8, ptr %call, i64 -30
  %is5 = call i1 @handle(ptr %s5, ptr %uc)
  br i1 %is5, label %begins, label %start.7
start.7:
  %s7 = getelementptr i8, ptr %call, i64 -32
  %is7 = call i1 @handle(ptr %s7, ptr %uc)
  br i1 %is7, label %begins, label %start.10
start.10:
  %s10 = getelementptr i8, ptr %call, i64 -35
  %is10 = call i1 @handle(ptr %s10, ptr %uc)
  br i1 %is10, label %begins, label %no
begins:
  %start = phi ptr [ %s5, %start.5 ], [ %s7, %start.7 ], [ %s10, %start.10 ]
  ; Behind it: movabs $$uc,%rdi    xor %esi,%esi    call helper_check_exit_request
  %again = call i1 @handle(ptr %code, ptr %uc)
  %zero = call i1 @bytes16(ptr %code, i64 10, i16 u0xF633)
  %tail = and i1 %again, %zero
  br i1 %tail, label %check, label %no
check:
  %check.near = call i1 @bytes8(ptr %code, i64 12, i8 u0xE8)
  br i1 %check.near, label %ends, label %check.far
check.far:
  %check.through = call i1 @bytes16(ptr %code, i64 12, i16 u0x15FF)
  br i1 %check.through, label %ends, label %no
ends:
  %check.size = phi i64 [ 17, %check ], [ 18, %check.far ]
  %first = ptrtoint ptr %start to i64
  %back = ptrtoint ptr %code to i64
  %end = add i64 %back, %check.size
  %jump = call i64 @late(i64 %back)
  %behind = add i64 %first, 23
  %distance = sub i64 %jump, %behind
  %short = trunc i64 %distance to i32
  %long = sext i32 %short to i64
  %reached = icmp eq i64 %long, %distance
  %there = icmp ne i64 %jump, 0
  %possible = and i1 %reached, %there
  br i1 %possible, label %replace, label %no
replace:
  %count = call i32 @asked(ptr %uc, i64 %address)
  call void @describe(ptr %entry, i64 %address, i32 %count, i32 %size)
  %resume.p = getelementptr i64, ptr %entry, i64 2
  store i64 %back, ptr %resume.p
  %entry.64 = ptrtoint ptr %entry to i64
  %entry.32 = trunc i64 %entry.64 to i32
  %words.32 = trunc i64 $words to i32
  ; mov $$words,%edi
  call void @put8(ptr %start, i64 0, i8 u0xBF)
  call void @put32(ptr %start, i64 1, i32 %words.32)
  ; mov $$entry,%esi
  call void @put8(ptr %start, i64 5, i8 u0xBE)
  call void @put32(ptr %start, i64 6, i32 %entry.32)
  ; mov TOTAL(%rdi),%rax    cmp NEXT(%rdi),%rax
  call void @put32(ptr %start, i64 10, i32 u0x48078B48)
  call void @put32(ptr %start, i64 13, i32 u0x08473B48)
  ; jae late
  call void @put16(ptr %start, i64 17, i16 u0x830F)
  call void @put32(ptr %start, i64 19, i32 %short)
  %few = icmp ult i32 %count, 128
  br i1 %few, label %small, label %large
small:
  ; addq $$count,TOTAL(%rdi)    mov %rsi,BLOCK(%rdi)
  %count.8 = shl i32 %count, 24
  %add.8 = or i32 %count.8, u0x00078348
  call void @put32(ptr %start, i64 23, i32 %add.8)
  ; All of the word is written, so that a load of the word soon after it does not wait for the cache.
  call void @put32(ptr %start, i64 27, i32 u0x20778948)
  br label %leave
large:
  ; addq $$count,TOTAL(%rdi)    mov %esi,BLOCK(%rdi): there is no room for more, because the hook returns after it.
  call void @put16(ptr %start, i64 23, i16 u0x8148)
  call void @put8(ptr %start, i64 25, i8 u0x07)
  call void @put32(ptr %start, i64 26, i32 %count)
  call void @put16(ptr %start, i64 30, i16 u0x7789)
  call void @put8(ptr %start, i64 32, i8 u0x20)
  br label %leave
leave:
  ; jmp end
  %jump.at = phi i64 [ 31, %small ], [ 33, %large ]
  %jump.p = getelementptr i8, ptr %start, i64 %jump.at
  %from.0 = add i64 %first, %jump.at
  %from = add i64 %from.0, 2
  %over = sub i64 %end, %from
  %over.8 = trunc i64 %over to i8
  call void @put8(ptr %jump.p, i64 0, i8 u0xEB)
  call void @put8(ptr %jump.p, i64 1, i8 %over.8)
  call void @redirect(ptr %start, ptr %code)
  ret i1 true
no:
  ret i1 false
}

; Blocks jump here when a deadline may be due; Python finds a place near them for the first block.
define internal i64 @late(i64 %code) {
  %known = call i64 @word(i64 $OVERDUE)
  %is.known = icmp ne i64 %known, 0
  br i1 %is.known, label %done, label %ask
ask:
  call void inttoptr (i64 $on_first_block to ptr)(i64 %code)
  %found = call i64 @word(i64 $OVERDUE)
  ret i64 %found
done:
  ret i64 %known
}

; The changed block jumps here: stop before the block, or count it; then continue after the old call.
define i64 @overdue(ptr %words, ptr %entry) {
  %address = load i64, ptr %entry
  %total = call i64 @word(i64 $TOTAL)
  %stopped = call i1 @stopped(i64 %address, i64 %total)
  br i1 %stopped, label %on, label %go
go:
  call void @run(ptr %entry, i64 %total)
  br label %on
on:
  %resume.p = getelementptr i64, ptr %entry, i64 2
  %resume = load i64, ptr %resume.p
  ret i64 %resume
}

; movabs $$uc,%rdi
define internal i1 @handle(ptr %place, ptr %uc) {
  %handle = ptrtoint ptr %uc to i64
  %rdi = call i1 @bytes16(ptr %place, i64 0, i16 u0xBF48)
  %same = call i1 @bytes64(ptr %place, i64 2, i64 %handle)
  %both = and i1 %rdi, %same
  ret i1 %both
}

define internal i1 @bytes8(ptr %place, i64 %offset, i8 %wanted) alwaysinline {
  %at = getelementptr i8, ptr %place, i64 %offset
  %found = load i8, ptr %at
  %same = icmp eq i8 %found, %wanted
  ret i1 %same
}

define internal i1 @bytes16(ptr %place, i64 %offset, i16 %wanted) alwaysinline {
  %at = getelementptr i8, ptr %place, i64 %offset
  %found = load i16, ptr %at, align 1
  %same = icmp eq i16 %found, %wanted
  ret i1 %same
}

define internal i1 @bytes64(ptr %place, i64 %offset, i64 %wanted) alwaysinline {
  %at = getelementptr i8, ptr %place, i64 %offset
  %found = load i64, ptr %at, align 1
  %same = icmp eq i64 %found, %wanted
  ret i1 %same
}

define internal void @put8(ptr %place, i64 %offset, i8 %value) alwaysinline {
  %at = getelementptr i8, ptr %place, i64 %offset
  store i8 %value, ptr %at
  ret void
}

define internal void @put16(ptr %place, i64 %offset, i16 %value) alwaysinline {
  %at = getelementptr i8, ptr %place, i64 %offset
  store i16 %value, ptr %at, align 1
  ret void
}

define internal void @put32(ptr %place, i64 %offset, i32 %value) alwaysinline {
  %at = getelementptr i8, ptr %place, i64 %offset
  store i32 %value, ptr %at, align 1
  ret void
}
