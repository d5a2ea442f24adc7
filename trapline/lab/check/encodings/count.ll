; Counts words by the results of the tables and of capstone.  native.py replaces names after a dollar sign.
;
; slots: {key, count, example} of 64 bits each; a count of 0 marks a free one.  Returns how many words were counted,
; fewer than asked for if the slots ran out.
define i64 @count(i64 %first, i64 %count, i64 %stride, ptr %handle, ptr %insn, ptr %slots) {
entry:
  %code = alloca i32
  %code.p = alloca ptr
  %left.p = alloca i64
  %at.p = alloca i64
  %detail.pp = getelementptr i8, ptr %insn, i64 $INSN_DETAIL
  %size.p = getelementptr i8, ptr %insn, i64 $INSN_SIZE
  %text.p = getelementptr i8, ptr %insn, i64 $INSN_TEXT
  br label %next
next:
  %index = phi i64 [ 0, %entry ], [ %index.next, %counted ]
  %more = icmp ult i64 %index, %count
  br i1 %more, label %decode, label %done
decode:
  %offset = mul i64 %index, %stride
  %number = add i64 %first, %offset
  %shifted = shl i64 %number, $FORM_SHIFT
  %word.64 = or i64 %shifted, $FORM_LOW
  %word = trunc i64 %word.64 to i32
$ROWS
  %rows.key = shl i64 %rows, $KEY_BITS
  store i32 %word, ptr %code
  store ptr %code, ptr %code.p
  store i64 $SIZE, ptr %left.p
  store i64 4096, ptr %at.p
  %known = call zeroext i1 inttoptr (i64 $DECODE to ptr)(ptr %handle, ptr %code.p, ptr %left.p, ptr %at.p, ptr %insn)
  br i1 %known, label %theirs, label %find
theirs:
  %id.32 = load i32, ptr %insn
  %id = zext i32 %id.32 to i64
  %id.key = shl i64 %id, $NUMBER_SHIFT
  %size.16 = load i16, ptr %size.p
  %size = zext i16 %size.16 to i64
  %size.bits = shl i64 %size, $SIZE_SHIFT
  %bracket = call ptr inttoptr (i64 $STRCHR to ptr)(ptr %text.p, i32 91)
  %memory = icmp ne ptr %bracket, null
  %memory.bits = select i1 %memory, i64 $BRACKET, i64 0
  %detail = load ptr, ptr %detail.pp
  %groups = getelementptr i8, ptr %detail, i64 $GROUPS
  %groups.count.p = getelementptr i8, ptr %detail, i64 $GROUPS_COUNT
  %groups.count = load i8, ptr %groups.count.p
  %bits.size = or i64 %size.bits, %memory.bits
  br label %group
group:
  %place = phi i8 [ 0, %theirs ], [ %place.next, %grouped ]
  %bits = phi i64 [ %bits.size, %theirs ], [ %bits.next, %grouped ]
  %group.more = icmp ult i8 %place, %groups.count
  br i1 %group.more, label %look, label %decoded
look:
  %group.p = getelementptr i8, ptr %groups, i8 %place
  %group.value = load i8, ptr %group.p
  switch i8 %group.value, label %grouped [ $CONTROL_GROUPS  i8 $RELATIVE_GROUP, label %relative ]
control:
  br label %grouped
relative:
  br label %grouped
grouped:
  %bit = phi i64 [ 0, %look ], [ $CONTROL_BIT, %control ], [ $RELATIVE_BIT, %relative ]
  %bits.next = or i64 %bits, %bit
  %place.next = add i8 %place, 1
  br label %group
decoded:
  %key.id = or i64 %rows.key, %id.key
  %key.all = or i64 %key.id, %bits
  br label %find
find:
  %key = phi i64 [ %rows.key, %decode ], [ %key.all, %decoded ]
  %mixed = mul i64 %key, -7046029254386353131
  %hash = lshr i64 %mixed, 40
  %probe.first = and i64 %hash, $SLOT_MASK
  br label %probe
probe:
  %slot = phi i64 [ %probe.first, %find ], [ %slot.next, %other ]
  %tries = phi i64 [ 0, %find ], [ %tries.next, %other ]
  %place.slot = mul i64 %slot, 3
  %key.p = getelementptr i64, ptr %slots, i64 %place.slot
  %count.p = getelementptr i64, ptr %key.p, i64 1
  %example.p = getelementptr i64, ptr %key.p, i64 2
  %so.far = load i64, ptr %count.p
  %free = icmp eq i64 %so.far, 0
  br i1 %free, label %take, label %compare
take:
  store i64 %key, ptr %key.p
  store i64 %word.64, ptr %example.p
  br label %counted
compare:
  %key.there = load i64, ptr %key.p
  %same = icmp eq i64 %key.there, %key
  br i1 %same, label %counted, label %other
other:
  %slot.on = add i64 %slot, 1
  %slot.next = and i64 %slot.on, $SLOT_MASK
  %tries.next = add i64 %tries, 1
  %full = icmp ugt i64 %tries.next, $SLOT_MASK
  br i1 %full, label %done, label %probe
counted:
  %so.far.next = add i64 %so.far, 1
  store i64 %so.far.next, ptr %count.p
  %index.next = add i64 %index, 1
  br label %next
done:
  %result = phi i64 [ %index, %next ], [ %index, %other ]
  ret i64 %result
}
