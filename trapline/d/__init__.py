"""The D compiler: from the text of a program to the DIF that the framework runs.

Read the modules in this order; each uses those before it, and `compiler` puts all of them together.

1. Words that all share: `errors` (a tag, a message, a place), `types` (C's types and string),
   `data_models` (long and pointers of 32 or 64 bits), `type_rules` (what a type may be used for),
   `builtins` (tables of what every program can name), `scopes` (what a program itself names),
   `typed` (checked expressions).
2. Text to syntax tree: `lexer` with `literals` and `macros`, `pragmas` (control lines), `d.lark`
   (the grammar), `parser`, `ast` (the tree), `trees` (walks over it: depth, names), `unparse` (back
   to text), `descriptions` (probe descriptions), `branches` (if and else to clauses without).
3. Meaning: `expressions` is the entry. Operators are in `operators`, names in `references` and
   `prototypes`, assignments in `assignments`, elements and members in `elements` with
   `arguments` (args[]), `translators` (kept in `translator_index`) and `inlines`; declarations in
   `declarations`, `providers` and `typetext` (a type from its name); `stability` says how stable a
   program is.
4. Actions: `statements` is the entry, `values` compiles what an action records, `printf` checks
   formats, `aggregations` and `quantize` compile aggregations.
5. Code: `codegen` is the entry, with `conditions` (branches) and `widths` (loads, stores,
   bit-fields) on `assembler` (registers and labels); `disassemble` shows the result (-S).

The steps follow libdtrace: all of a program is parsed; then, for each clause and each of its probe
descriptions, all types are checked ("cooking"), and only then is code generated.  The tag of an
error depends on this order.

Sources: FreeBSD cddl/contrib/opensolaris/lib/libdtrace/common, by module: dt_lex.l and dt_grammar.y
(2), dt_parser.c, dt_ident.c, dt_decl.c and dt_xlator.c (3), dt_cc.c and dt_printf.c (4), dt_cg.c
and dt_as.c (5).
"""
