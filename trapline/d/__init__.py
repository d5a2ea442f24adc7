"""The D compiler: from the text of a program to the DIF that the framework runs.

`compiler` has the passes in their order.  Each pass is a folder, and uses those before it:

1. `parse`: text to syntax tree.  `lexer` with `literals` and `macros`, `parser` with `d.lark` (the
   grammar), `ast` (the tree), `unparse` (back to text), `descriptions` (of probes), `branches` (if
   and else to clauses without).
2. `types`: `types` (C's types and string), `data_models` (long and pointers of 32 or 64 bits),
   `rules` (sizes, and what a type may be used for), `names` (of types, also those of the traced
   system), `declarators` (the types that declarations write).
3. `check`: names and types of expressions.  `clauses` and `expressions` are the entries.  Tables
   are in `builtins` (what every program can name) and `scopes` (what a program itself names);
   `typed` has the typed tree.  Operators are in `operators` and `conversions`, names in
   `references`, elements and members in `elements`, variables and inlines in `declarations` and
   `assignments`; then there are `translators`, `aggregations`, `probes` (args[], provider blocks),
   `printf` (formats), `pragmas` (control lines) and `stability`.
4. `codegen`: actions and DIF.  `statements` is the entry, `values` compiles what an action records,
   `aggregations` what is aggregated; `expressions` generates DIF with `widths` (loads, stores,
   bit-fields) on `assembler` (registers and labels); `disassemble` shows the result (-S).

`errors` is for all of them: a tag, a message, a location.

As in libdtrace, all of a program is parsed; then, for each clause and each of its probe
descriptions, all types are checked ("cooking"), and only then is code generated.  The tag of an
error depends on this order.

Sources: FreeBSD cddl/contrib/opensolaris/lib/libdtrace/common, by pass: dt_lex.l, dt_grammar.y and
dt_sugar.c (1), dt_decl.c (2), dt_parser.c, dt_ident.c, dt_xlator.c and dt_pragma.c (3), dt_cc.c,
dt_printf.c, dt_cg.c and dt_as.c (4).
"""
