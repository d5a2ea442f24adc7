"""The model solution of sheet 4; ISA chooses among the bytes, as the student did."""

BYTES = {"x86_64": "cc", "i386": "cc", "aarch64": "000020d4", "riscv64": "0290"}
BREAKPOINT = bytes.fromhex(BYTES["{isa}"])


def install(cpu, address):
    saved = cpu.read(address, len(BREAKPOINT))
    cpu.write(address, BREAKPOINT)
    cpu.flush(address, len(BREAKPOINT))
    return saved


def remove(cpu, address, saved):
    cpu.write(address, saved)
    cpu.flush(address, len(saved))


def handle(cpu, address):
    if cpu.isa == "aarch64":
        cpu.store(cpu["sp"] - 32, cpu["x29"])
        cpu.store(cpu["sp"] - 24, cpu["x30"])
        cpu["sp"] -= 32
        cpu["pc"] = address + 4
    elif cpu.isa == "riscv64":
        cpu.store(cpu["sp"] + 24, cpu["ra"])
        cpu["pc"] = address + 2
    else:
        cpu.store(cpu["sp"] - cpu.word, cpu["fp"])
        cpu["sp"] -= cpu.word
        cpu["pc"] = address + 1
