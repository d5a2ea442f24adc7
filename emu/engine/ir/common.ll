; Shared by all ISAs.  emu/engine/native_callbacks.py puts a number in for each name after a dollar sign: words of
; emu/engine/state.py, offsets of emu/engine/qemu/layout.py, the ISA's own names (emu/isa/<isa>/unicorn.py), addresses of
; functions.

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

; The translator asks before each instruction whether it is an exit (emu/engine/qemu/exits.py).  The next question is whether it
; is hooked: the range of the hook is set for that (emu/engine/qemu/code_hooks.py).  `choose` is made by code_hooks_code.py.
define i32 @exit_or_not(ptr %key, ptr %node, ptr %data) {
  %address = load i64, ptr %key
  %stop.p = getelementptr i64, ptr inttoptr (i64 $words to ptr), i64 $STOP_AT
  %stop = load i64, ptr %stop.p
  %here = icmp eq i64 %stop, %address
  br i1 %here, label %yes, label %chosen
yes:
  ret i32 0
chosen:
  %served = call i64 @choose(i64 %address)
  %hooked = icmp ne i64 %served, 0
  br i1 %hooked, label %no, label %ask
ask:
  %answer = call i32 @emulated(ptr %key, ptr %node, ptr %data)
  ret i32 %answer
no:
  ret i32 1
}

; emu_start calls this at its end for each exit (emu/engine/qemu/exits.py): nothing must be dropped.
define i32 @keep(ptr %uc, i64 %address, i64 %size) {
  ret i32 0
}

; Unicorn's TLB misses an address: the answer that Python gave before, if it still holds, or Python's (emu/engine/qemu/tlb.py).
define zeroext i1 @fill(ptr %uc, i64 %address, i32 %kind, ptr %entry, ptr %data) {
  %page = lshr i64 %address, 12
  %index = and i64 %page, $FILLS_MASK
  %fills.p = getelementptr i64, ptr inttoptr (i64 $words to ptr), i64 $FILLS
  %fills = load ptr, ptr %fills.p
  %slot = getelementptr {i64, i64}, ptr %fills, i64 %index
  %key = load i64, ptr %slot
  %generation.p = getelementptr i64, ptr inttoptr (i64 $words to ptr), i64 $GENERATION
  %generation = load i64, ptr %generation.p
  %wanted = or i64 %page, %generation
  %same = icmp eq i64 %key, %wanted
  br i1 %same, label %known, label %ask
known:
  %answer.p = getelementptr {i64, i64}, ptr %slot, i64 0, i32 1
  %answer = load i64, ptr %answer.p
  ; Unicorn's numbers for read, write and fetch follow each other, as the bits of an access do.
  %number = sub i32 %kind, $READ_KIND
  %number64 = zext i32 %number to i64
  %bit = shl i64 1, %number64
  %granted = and i64 %answer, %bit
  %refused = icmp eq i64 %granted, 0
  br i1 %refused, label %ask, label %give
give:
  call void @grow()
  %frame = and i64 %answer, -4096
  %offset = and i64 %address, 4095
  %physical = or i64 %frame, %offset
  store i64 %physical, ptr %entry
  %access = and i64 %answer, 4095
  %access32 = trunc i64 %access to i32
  %access.p = getelementptr {i64, i32}, ptr %entry, i64 0, i32 1
  store i32 %access32, ptr %access.p
  ret i1 true
ask:
  %python = call zeroext i1 inttoptr (i64 $on_fill to ptr)(ptr %uc, i64 %address, i32 %kind, ptr %entry, ptr %data)
  call void @grow()
  ret i1 %python
}

; QEMU's TLB starts with 256 entries and is resized only when it is emptied: to twice its size if it was nearly full.
; A program that reads more pages than that misses all the time, so the TLB is emptied after 512 fills, after 1,024
; more, and so on, until it holds everything that the table of answers does.
define internal void @grow() alwaysinline {
  %filled.p = getelementptr i64, ptr inttoptr (i64 $words to ptr), i64 $FILLED
  %before = load i64, ptr %filled.p
  %filled = add i64 %before, 1
  store i64 %filled, ptr %filled.p
  %max.p = getelementptr i64, ptr inttoptr (i64 $words to ptr), i64 $FILLED_MAX
  %max = load i64, ptr %max.p
  %full = icmp eq i64 %filled, %max
  br i1 %full, label %empty, label %done
empty:
  store i64 0, ptr %filled.p
  %more = shl i64 %max, 1
  store i64 %more, ptr %max.p
  %cpu.pp = getelementptr i64, ptr inttoptr (i64 $words to ptr), i64 $CPU
  %cpu = load ptr, ptr %cpu.pp
  call void inttoptr (i64 $tlb_flush to ptr)(ptr %cpu)
  br label %done
done:
  ret void
}

; A trap asks Python first; only when Python has returned is the exception handed to QEMU.
; A system call, of which there are many, goes directly to the guest if it has a kernel.
define void @trap(ptr %uc, i32 %number, ptr %words) {
  %pc.p = call ptr @env(ptr %words, i64 $PC_OFFSET)
  %pc.ahead = load i64, ptr %pc.p
  %pc = sub i64 %pc.ahead, $PC_AHEAD
  store i64 %pc, ptr %pc.p
  %is.breakpoint = icmp eq i32 %number, $BREAKPOINT_NUMBER
  br i1 %is.breakpoint, label %breakpoint, label %other
breakpoint:
  ; The pc may be after the breakpoint; the handlers get the breakpoint's own address.
  %at = sub i64 %pc, $BREAKPOINT_LENGTH
  store i64 %at, ptr %pc.p
  %unclaimed = call i1 @breakpoint(ptr %words)
  br i1 %unclaimed, label %back, label %done
back:
  %left = load i64, ptr %pc.p
  %behind = add i64 %left, $BREAKPOINT_LENGTH
  store i64 %behind, ptr %pc.p
  br label %guest
other:
  %direct = icmp eq i32 %number, $DIRECT_SYSTEM_CALL
  br i1 %direct, label %guest, label %ask
ask:
  ; It may end an instruction that ran out of line (emu/engine/hits/tracepoints.py): the trapping instruction then ends its block.
  %block.p = getelementptr i64, ptr %words, i64 $BLOCK
  %block = load i64, ptr %block.p
  store i64 0, ptr %block.p
  %number64 = zext i32 %number to i64
  %upper = shl i64 %number64, 56
  %key = xor i64 %upper, %pc
  %taken = call i64 @take(i64 %key)
  %served = icmp eq i64 %taken, $HANDLED
  br i1 %served, label %done, label %anywhere
anywhere:
  ; Or the same exception at any pc.
  %taken.anywhere = call i64 @take(i64 %upper)
  %served.anywhere = icmp eq i64 %taken.anywhere, $HANDLED
  br i1 %served.anywhere, label %done, label %python
python:
  store i64 %block, ptr %block.p
  %answer = call i32 inttoptr (i64 $on_trap to ptr)(i32 %number)
  %wanted = icmp ne i32 %answer, 0
  br i1 %wanted, label %guest, label %done
guest:
  call void @deliver(ptr %words)
  ret void
done:
  ret void
}

; A breakpoint ends its block, and counts as the instruction it displaced: nothing of the block must be subtracted.
; Its handlers find the pc at the breakpoint; x86's int3 leaves the pc after it, which is what the guest's own vector expects.
; `take` and `plan` are made by emu/engine/hits/firing_code.py and plan_code.py.
define i1 @breakpoint(ptr %words) {
  %asked.p = getelementptr i64, ptr %words, i64 $UNCLAIMED
  %asked = load i64, ptr %asked.p
  %again = icmp ne i64 %asked, 0
  br i1 %again, label %known, label %new
known:
  store i64 0, ptr %asked.p
  %ended.p = getelementptr i64, ptr %words, i64 $BLOCK
  store i64 0, ptr %ended.p
  ret i1 true
new:
  %block.p = getelementptr i64, ptr %words, i64 $BLOCK
  store i64 0, ptr %block.p
  %pc.p = call ptr @env(ptr %words, i64 $PC_OFFSET)
  %pc = load i64, ptr %pc.p
  %address = sub i64 %pc, $PC_AFTER
  %delivered.p = getelementptr i64, ptr %words, i64 $DELIVERED
  %delivered = load i64, ptr %delivered.p
  %unasked = icmp ult i64 %address, %delivered
  br i1 %unasked, label %unclaimed, label %take
take:
  store i64 %address, ptr %pc.p
  %taken = call i64 @take(i64 %address)
  switch i64 %taken, label %ask [ i64 $HANDLED, label %handled  i64 $LATE, label %late ]
ask:
  %answer = call i64 inttoptr (i64 $on_breakpoint to ptr)(i64 %address)
  switch i64 %answer, label %displaced [ i64 $HANDLED, label %handled  i64 $DELIVER, label %unclaimed ]
displaced:
  ; Claimed, and the answer is the displaced instruction's plan.
  %done = call i64 @plan(i64 %answer)
  %whole = icmp ne i64 %done, 0
  br i1 %whole, label %handled, label %late
late:
  %late.answer = call i32 inttoptr (i64 $on_late to ptr)(i64 %address)
  %wanted = icmp ne i32 %late.answer, 0
  br i1 %wanted, label %unclaimed, label %handled
handled:
  ret i1 false
unclaimed:
  store i64 %pc, ptr %pc.p
  ret i1 true
}
