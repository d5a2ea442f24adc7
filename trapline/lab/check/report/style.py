"""The style sheet of the page: light or dark like the reader's system, and plain in print."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark;
  --page: #f7f7f5; --card: #fff; --ink: #1d2126; --dim: #5c6670; --line: #dcdfe2; --code: #f0f1ef;
  --agreed: #2b7a4b; --diverged: #c0262d; --refused: #b57d0a; --unrepeatable: #3a6fa5; --crashed: #7d3c98; }
@media (prefers-color-scheme: dark) { :root {
  --page: #14171a; --card: #1c2024; --ink: #e4e7ea; --dim: #98a2ac; --line: #343a41; --code: #262b30;
  --agreed: #4fb477; --diverged: #f2686d; --refused: #e0ad45; --unrepeatable: #74a9dd; --crashed: #c08ad6; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1rem; font-weight: 600; color: var(--dim); margin: 0; }
h2 { font-size: 1.1rem; margin: 2.5rem 0 .75rem; }
h3 { font-size: 1rem; margin: 0; overflow-wrap: anywhere; }
h4 { font-size: .9rem; margin: 1.1rem 0 .35rem; font-weight: 600; }
p { margin: .4rem 0; }
a { color: inherit; }
.verdict { font-size: 1.5rem; line-height: 1.3; font-weight: 650; margin: .25rem 0 .75rem; }
.verdict.same { color: var(--agreed); } .verdict.different { color: var(--diverged); }
.dim, caption, .kind { color: var(--dim); } .kind { font-weight: 400; }
code, pre, .mono td, td.mono { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: .88em; }
pre { background: var(--code); padding: .55rem .75rem; border-radius: 5px; margin: .6rem 0; white-space: pre-wrap;
  overflow-wrap: anywhere; }
dl.facts { display: flex; flex-wrap: wrap; gap: .1rem 1.5rem; margin: .5rem 0 0; font-size: .9rem; }
dl.facts div { display: flex; gap: .4rem; } dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
.bar { display: block; width: 100%; height: 1.6rem; border-radius: 4px; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; padding: 0; margin: .6rem 0 0; }
.legend svg { width: .8em; height: .8em; margin-right: .45em; }
.legend b { font-variant-numeric: tabular-nums; }
.agreed { fill: var(--agreed); } .diverged { fill: var(--diverged); } .refused { fill: var(--refused); }
.unrepeatable { fill: var(--unrepeatable); } .crashed { fill: var(--crashed); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 7px; padding: 1rem 1.2rem; }
.card + .card { margin-top: 1rem; }
.trouble { border-left: 4px solid var(--diverged); } .trouble.of-crashed { border-left-color: var(--crashed); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
caption { text-align: left; padding-bottom: .3rem; font-size: .88rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
tr:last-child > * { border-bottom: 0; }
thead th { color: var(--dim); font-weight: 500; white-space: nowrap; }
tbody th { font-weight: 500; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.small-bar { width: 9rem; height: .7rem; } td.picture { width: 10rem; }
.state { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: .1rem 1rem; margin: 0; }
.state div { display: flex; gap: .6rem; } .state dt { min-width: 3.5rem; }
.state dd { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: .88em; }
td.before { color: var(--agreed); } td.after { color: var(--diverged); }
.yes { color: var(--agreed); } .no { color: var(--diverged); font-weight: 600; }
footer { margin-top: 3rem; font-size: .85rem; color: var(--dim); }
@media print { body { background: none; font-size: 10.5pt; } main { max-width: none; padding: 0; }
  .card { break-inside: avoid; border-color: #999; } h2, h3, h4 { break-after: avoid; }
  svg { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
