// one instruction
