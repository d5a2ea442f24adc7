; Where jumps continue, on hosts that are x86-64 (emu/engine/qemu/jump_cache.py).

; Makes the ends of a new block jump to @go_on instead of calling QEMU's helper.
; %start is an address in the first bytes of its code, %code where the hook returns to.  Its description, which is before
; the code, has the address of the code and its size behind each other.
define internal void @redirect(ptr %start, ptr %code) noinline {
entry:
  %table = call i64 @word(i64 $JUMPS)
  %unused = icmp eq i64 %table, 0
  br i1 %unused, label %done, label %describe
describe:
  %first = ptrtoint ptr %start to i64
  %from = ptrtoint ptr %code to i64
  %aligned = and i64 %first, -8
  br label %search
search:
  %behind = phi i64 [ %aligned, %describe ], [ %at, %next ]
  %at = sub i64 %behind, 8
  %at.p = inttoptr i64 %at to ptr
  %begin = load i64, ptr %at.p
  %into = sub i64 %first, %begin
  %found = icmp ule i64 %into, $JUMPS_HEAD
  br i1 %found, label %described, label %next
next:
  %distance = sub i64 %first, %at
  %gone = icmp ugt i64 %distance, $JUMPS_DESCRIPTION
  br i1 %gone, label %done, label %search
described:
  %size.p = getelementptr i64, ptr %at.p, i64 1
  %size = load i64, ptr %size.p
  %end = add i64 %begin, %size
  %sane = icmp ule i64 %size, $JUMPS_LONGEST
  br i1 %sane, label %scan, label %done
scan:
  ; call helper    jmp *%rax
  %place = phi i64 [ %from, %described ], [ %following, %again ]
  %following = add i64 %place, 1
  %last = add i64 %place, 7
  %more = icmp ule i64 %last, %end
  br i1 %more, label %look, label %done
look:
  %place.p = inttoptr i64 %place to ptr
  %near = call i1 @bytes8(ptr %place.p, i64 0, i8 u0xE8)
  %near.jump = call i1 @bytes16(ptr %place.p, i64 5, i16 u0xE0FF)
  %is.near = and i1 %near, %near.jump
  br i1 %is.near, label %relative, label %far
relative:
  %offset.p = getelementptr i8, ptr %place.p, i64 1
  %offset = load i32, ptr %offset.p, align 1
  %return = add i64 %place, 5
  %offset.64 = sext i32 %offset to i64
  %target = add i64 %return, %offset.64
  %is.helper = icmp eq i64 %target, $helper_lookup_tb_ptr
  br i1 %is.helper, label %write.near, label %again
write.near:
  call void @put_jump(i64 %place)
  br label %again
far:
  ; call *constant(%rip)    jmp *%rax
  %through = call i1 @bytes16(ptr %place.p, i64 0, i16 u0x15FF)
  %far.jump = call i1 @bytes16(ptr %place.p, i64 6, i16 u0xE0FF)
  %far.call = and i1 %through, %far.jump
  %inside = icmp ult i64 %last, %end
  %is.far = and i1 %far.call, %inside
  br i1 %is.far, label %constant, label %again
constant:
  %constant.p = getelementptr i8, ptr %place.p, i64 2
  %constant.offset = load i32, ptr %constant.p, align 1
  %constant.64 = sext i32 %constant.offset to i64
  %next.code = add i64 %place, 6
  %pool = add i64 %next.code, %constant.64
  %pool.end = add i64 %pool, 8
  %low = icmp uge i64 %pool, %begin
  %high = icmp ule i64 %pool.end, %end
  %own = and i1 %low, %high
  br i1 %own, label %pooled, label %again
pooled:
  %pool.p = inttoptr i64 %pool to ptr
  %pooled.target = load i64, ptr %pool.p, align 1
  %pooled.helper = icmp eq i64 %pooled.target, $helper_lookup_tb_ptr
  br i1 %pooled.helper, label %write.far, label %again
write.far:
  ; The sixth byte becomes a nop.
  call void @put_jump(i64 %place)
  call void @put8(ptr %place.p, i64 5, i8 u0x90)
  br label %again
again:
  br label %scan
done:
  ret void
}

; jmp @go_on, if it is in reach, or the bytes that are
define internal void @put_jump(i64 %place) {
  %return = add i64 %place, 5
  %direct = sub i64 ptrtoint (ptr @go_on to i64), %return
  %direct.32 = trunc i64 %direct to i32
  %direct.64 = sext i32 %direct.32 to i64
  %reached = icmp eq i64 %direct.64, %direct
  %late = call i64 @word(i64 $OVERDUE)
  %stub = add i64 %late, $JUMPS_STUB
  %target = select i1 %reached, i64 ptrtoint (ptr @go_on to i64), i64 %stub
  %offset = sub i64 %target, %return
  %offset.32 = trunc i64 %offset to i32
  %place.p = inttoptr i64 %place to ptr
  call void @put8(ptr %place.p, i64 0, i8 u0xE9)
  call void @put32(ptr %place.p, i64 1, i32 %offset.32)
  ret void
}

; A block is entered for the first time.  Blocks are translated upwards: if it is not above all others, QEMU has dropped
; all blocks and begun at the start of its memory again.
define internal void @entered(ptr %code) alwaysinline {
  %from = ptrtoint ptr %code to i64
  %latest = call i64 @word(i64 $LATEST)
  %higher = icmp ugt i64 %from, %latest
  br i1 %higher, label %done, label %again
again:
  call void @set_word(i64 $INVALIDATED, i64 $FORGOTTEN)
  br label %done
done:
  call void @set_word(i64 $LATEST, i64 %from)
  ret void
}

; The ends of blocks jump here, and this jumps to the block at the pc, or to the code that leaves the run.  What is found at
; once needs no call, so that no register is saved and the stack, which is as in a block, is not used.
define i64 @go_on(ptr %env) {
  %found = call ptr @found_block(ptr %env)
  %known = icmp ne ptr %found, null
  br i1 %known, label %go, label %ask
go:
  %code = load ptr, ptr %found
  %left = musttail call i64 %code(ptr %env)
  ret i64 %left
ask:
  ; Bytes that call @asked_block, and jump to its answer.
  %late = call i64 @word(i64 $OVERDUE)
  %stub = add i64 %late, $JUMPS_ASK
  %stub.p = inttoptr i64 %stub to ptr
  %asked = musttail call i64 %stub.p(ptr %env)
  ret i64 %asked
}

; Where the table has the machine code of the block at the pc; null if it has none.
define internal ptr @found_block(ptr %env) alwaysinline {
  %pc.p = getelementptr i8, ptr %env, i64 $PC_OFFSET
  %pc = load i64, ptr %pc.p
  %key = call i64 @translation_key(ptr %env)
  %known.key = call i64 @word(i64 $JUMPS_KEY)
  %other.key = xor i64 %key, %known.key
  %count = call i64 @dropped()
  %known.count = call i64 @word(i64 $INVALIDATED)
  %other.count = xor i64 %count, %known.count
  %other = or i64 %other.key, %other.count
  %holds = icmp eq i64 %other, 0
  br i1 %holds, label %find, label %unknown
find:
  %first = call ptr @jumps_from(i64 %pc)
  %first.pc = load i64, ptr %first
  %is.first = icmp eq i64 %first.pc, %pc
  br i1 %is.first, label %known, label %look
look:
  %second = getelementptr {i64, i64}, ptr %first, i64 1
  %second.pc = load i64, ptr %second
  %is.second = icmp eq i64 %second.pc, %pc
  br i1 %is.second, label %known, label %unknown
known:
  %entry = phi ptr [ %first, %find ], [ %second, %look ]
  %code.p = getelementptr {i64, i64}, ptr %entry, i64 0, i32 1
  ret ptr %code.p
unknown:
  ret ptr null
}

; The same from QEMU's helper.  The newer entry of a pair is its first.
define i64 @asked_block(ptr %env) noinline {
  %key = call i64 @translation_key(ptr %env)
  %known.key = call i64 @word(i64 $JUMPS_KEY)
  %other.key = xor i64 %key, %known.key
  %count = call i64 @dropped()
  %known.count = call i64 @word(i64 $INVALIDATED)
  %other.count = xor i64 %count, %known.count
  %other = or i64 %other.key, %other.count
  %holds = icmp eq i64 %other, 0
  br i1 %holds, label %ask, label %empty
empty:
  call void @empty_jumps(i64 %key, i64 %count)
  br label %ask
ask:
  ; The code that leaves the run is below all blocks.
  %answer = call i64 inttoptr (i64 $helper_lookup_tb_ptr to ptr)(ptr %env)
  %lowest = call i64 @word(i64 $LOWEST)
  %block = icmp ugt i64 %answer, %lowest
  br i1 %block, label %keep, label %give
keep:
  %pc.p = getelementptr i8, ptr %env, i64 $PC_OFFSET
  %pc = load i64, ptr %pc.p
  %first = call ptr @jumps_from(i64 %pc)
  %second = getelementptr {i64, i64}, ptr %first, i64 1
  %older = load {i64, i64}, ptr %first
  store {i64, i64} %older, ptr %second
  %code.p = getelementptr {i64, i64}, ptr %first, i64 0, i32 1
  store i64 %pc, ptr %first
  store i64 %answer, ptr %code.p
  br label %give
give:
  ret i64 %answer
}

; QEMU's count of dropped blocks.
define internal i64 @dropped() alwaysinline {
  %count.at = call i64 @word(i64 $INVALIDATIONS)
  %count.p = inttoptr i64 %count.at to ptr
  %count = load i64, ptr %count.p
  ret i64 %count
}

; The pair of entries for a pc.
define internal ptr @jumps_from(i64 %pc) alwaysinline {
  %table = call i64 @word(i64 $JUMPS)
  %table.p = inttoptr i64 %table to ptr
  %lower = lshr i64 %pc, $JUMPS_UNIT
  %page = lshr i64 %pc, $JUMPS_PAGE
  %mixed = xor i64 %lower, %page
  %index = and i64 %mixed, $JUMPS_MASK
  %pair = getelementptr [2 x {i64, i64}], ptr %table.p, i64 %index
  ret ptr %pair
}

; Gives each entry an address that belongs to another pair.  The stores are volatile, so that they do not become a call
; of memset, which is not linked.
define internal void @empty_jumps(i64 %key, i64 %count) noinline {
start:
  call void @set_word(i64 $JUMPS_KEY, i64 %key)
  call void @set_word(i64 $INVALIDATED, i64 %count)
  %table = call i64 @word(i64 $JUMPS)
  %table.p = inttoptr i64 %table to ptr
  br label %clear
clear:
  %index = phi i64 [ 0, %start ], [ %next, %clear ]
  %pair = icmp ult i64 %index, 2
  %other = select i1 %pair, i64 $JUMPS_SECOND, i64 0
  %entry = getelementptr {i64, i64}, ptr %table.p, i64 %index
  store volatile i64 %other, ptr %entry
  %next = add i64 %index, 1
  %more = icmp ult i64 %next, $JUMPS_ENTRIES
  br i1 %more, label %clear, label %done
done:
  ret void
}
