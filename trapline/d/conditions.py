"""Conditions to DIF: comparisons, logical operators and ?:, with the branches they take.

Each function generates a node's value and returns the register it is in, which the caller must
release.  The sequences are those of libdtrace (FreeBSD dt_cg.c: dt_cg_compare_op(),
dt_cg_logical_and() and the like, dt_cg_ternary_op()).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from trapline.d import typed
from trapline.d.assembler import Assembler, Label
from trapline.d.typed import Connective
from trapline.framework.dif import Op, encode_registers

# Generates a node's value, in a register.
Generate: TypeAlias = Callable[[typed.Node], int]


def compare(out: Assembler, generate: Generate, node: typed.Compare) -> int:
    """Generate a comparison: 0 or 1."""
    holds, end = Label(), Label()
    left = generate(node.left)
    right = generate(node.right)
    out.emit(node.op, left, right)
    out.release(right)
    out.branch(node.branch, holds)
    out.emit(Op.MOV, 0, rd=left)
    out.branch(Op.BA, end)
    out.bind(holds)
    out.set(left, 1)
    out.bind(end)
    return left


def negate(out: Assembler, generate: Generate, node: typed.Not) -> int:
    """Generate a logical negation: 0 or 1."""
    zero, end = Label(), Label()
    register = generate(node.operand)
    out.emit(Op.TST, register)
    out.branch(Op.BE, zero)
    out.emit(Op.MOV, 0, rd=register)
    out.branch(Op.BA, end)
    out.bind(zero)
    out.set(register, 1)
    out.bind(end)
    return register


def logical(out: Assembler, generate: Generate, node: typed.Logical) -> int:
    """Generate && or ||, whose right side may be left out, or ^^, which needs both."""
    if node.connective is Connective.XOR:
        return _exclusive_or(out, generate, node)
    true, false, end = Label(), Label(), Label()
    left = generate(node.left)
    out.emit(Op.TST, left)
    out.release(left)
    if node.connective is Connective.AND:
        out.branch(Op.BE, false)
    else:
        out.branch(Op.BNE, true)
    register = generate(node.right)
    out.emit(Op.TST, register)
    out.branch(Op.BE, false)
    out.bind(true)
    out.set(register, 1)
    out.branch(Op.BA, end)
    out.bind(false)
    out.emit(Op.MOV, 0, rd=register)
    out.bind(end)
    return register


def _exclusive_or(out: Assembler, generate: Generate, node: typed.Logical) -> int:
    left = _truth(out, generate, node.left)
    right = _truth(out, generate, node.right)
    out.emit(Op.XOR, left, right, left)
    out.release(right)
    return left


def _truth(out: Assembler, generate: Generate, node: typed.Node) -> int:
    """Generate a node's value as 0 or 1."""
    zero = Label()
    register = generate(node)
    out.emit(Op.TST, register)
    out.branch(Op.BE, zero)
    out.set(register, 1)
    out.bind(zero)
    return register


def choose(out: Assembler, generate: Generate, node: typed.Choice) -> int:
    """Generate ?:, of which only one branch is executed."""
    otherwise, end = Label(), Label()
    test = generate(node.test)
    out.emit(Op.TST, test)
    out.release(test)
    out.branch(Op.BE, otherwise)
    then = generate(node.then)
    out.release(then)
    move = out.place
    out.emit(Op.NOP)
    out.branch(Op.BA, end)
    out.bind(otherwise)
    register = generate(node.otherwise)
    # Only now is the register known in which the other branch leaves its value.
    out.put(move, encode_registers(Op.MOV, then, 0, register))
    out.bind(end)
    return register
