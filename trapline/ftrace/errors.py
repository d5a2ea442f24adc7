"""The errors in the definition of an event.

Source: Linux 6.12 kernel/trace/trace_probe.h (ERRORS).
"""

from __future__ import annotations

from typing import Final

# Message by identifier; BAD_DEFINITION is Trapline's own: in Linux other kinds of events parse such lines.
TEXTS: Final = {
    "FILE_NOT_FOUND": "there is no such file",
    "NO_REGULAR_FILE": "not a regular file",
    "BAD_UPROBE_OFFS": "not an offset: a number is wanted",
    "BAD_ADDR_SUFFIX": "only %return may follow the offset",
    "REFCNT_OPEN_BRACE": "the reference counter lacks its ')'",
    "BAD_REFCNT_SUFFIX": "nothing may follow the reference counter",
    "BAD_REFCNT": "not a reference counter: a number is wanted",
    "NO_GROUP_NAME": "the group has no name",
    "GROUP_TOO_LONG": "the group's name is too long",
    "BAD_GROUP_NAME": "not a name for a group: letters, digits, '_' and '-'",
    "NO_EVENT_NAME": "the event has no name",
    "EVENT_TOO_LONG": "the event's name is too long",
    "BAD_EVENT_NAME": "not a name for an event: letters, digits and '_'",
    "EVENT_EXIST": "there is an event of this name already",
    "NO_ARG_NAME": "the argument has no name before '='",
    "ARG_NAME_TOO_LONG": "the argument's name is too long",
    "BAD_ARG_NAME": "not a name for an argument: letters, digits and '_'",
    "USED_ARG_NAME": "this argument name is used already",
    "NO_ARG_BODY": "the argument is empty",
    "ARG_TOO_LONG": "the argument is too long",
    "BAD_REG_NAME": "there is no such register",
    "BAD_VAR": "there is no such $variable",
    "BAD_STACK_NUM": "not a place on the stack: $stackN",
    "RETVAL_ON_PROBE": "$retval is only for return probes",
    "NOFENTRY_ARGS": "$arg is only for functions of the kernel",
    "NOSUP_BTFARG": "names of variables are only for the kernel",
    "BAD_MEM_ADDR": "not an address",
    "BAD_FILE_OFFS": "not an offset in the file",
    "SYM_ON_UPROBE": "symbols are only for kprobes; give a number",
    "BAD_IMM": "not a number",
    "IMMSTR_NO_CLOSE": "the string lacks its '\"'",
    "DEREF_NEED_BRACE": "a dereference needs an offset and braces: +8(%di)",
    "DEREF_OPEN_BRACE": "the dereference lacks its ')'",
    "BAD_DEREF_OFFS": "not an offset",
    "COMM_CANT_DEREF": "$comm cannot be dereferenced",
    "TOO_MANY_OPS": "too many dereferences",
    "BAD_TYPE": "there is no such type",
    "BAD_STRING": "a string needs memory: +0(%di):string",
    "NEED_STRING_TYPE": "only the type string is allowed here",
    "BAD_BITFIELD": "not a bit field: b<width>@<offset>/<container>",
    "ARRAY_NO_CLOSE": "the array lacks its ']'",
    "BAD_ARRAY_SUFFIX": "nothing may follow ']'",
    "BAD_ARRAY_NUM": "not a number of elements",
    "ARRAY_TOO_BIG": "an array has 64 elements at most",
    "BAD_FETCH_ARG": "not an argument",
    "EVENT_TOO_BIG": "the event is too large",
    "BAD_DEFINITION": "not a definition: p:[GROUP/]EVENT PATH:OFFSET [ARGUMENT ...]",
}


class UprobeEventError(Exception):
    """A definition that is refused.

    `id` is Linux' name of the error, `column` its position in `command`.
    """

    def __init__(self, identifier: str, command: str, column: int) -> None:
        super().__init__(f"{TEXTS[identifier]} ({identifier})")
        self.id = identifier
        self.command = command
        self.column = column

    def log_entry(self, time: int) -> str:
        """Return the entry of error_log for an error at `time` (nanoseconds)."""
        seconds, rest = divmod(time // 1000, 1_000_000)
        head = f"[{seconds:5d}.{rest:06d}] trace_uprobe: error: {TEXTS[self.id]}"
        return f"{head}\n  Command: {self.command}\n           {' ' * self.column}^\n"
