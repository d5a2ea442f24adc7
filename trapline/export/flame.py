"""A flame graph: an SVG that fits any width, and a page that holds one.

The width of a frame is the share of its stacks; colours say the module, the same in every graph.
Positions are in per cent, so that text keeps its size on a narrow screen.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Final

from emu.support.one_line import one_line
from trapline.export.folded import Folded

_ROW: Final = 18
_HEAD: Final = 26
# Frames narrower than this share of the whole are not drawn: one pixel of a wide screen.
_NARROWEST: Final = 0.0005
_HUES: Final = (8, 20, 32, 44, 150, 175, 200, 225, 265, 310)
_STYLE: Final = """
svg{font:12px ui-monospace,monospace}
.flame{--ink:#1b1b1b;--paper:#fff;--edge:#fff;--light:72%;background:var(--paper)}
@media(prefers-color-scheme:dark){.flame{--ink:#f2f2f2;--paper:#16181c;--edge:#16181c;--light:34%}}
.flame text{fill:var(--ink)}
.flame rect{stroke:var(--edge);stroke-width:.6}
.flame .f:hover rect{stroke:var(--ink);stroke-width:1.5}
.flame .f:focus rect{stroke:var(--ink);stroke-width:2}
.flame .found rect{fill:#c026d3}
"""
_SCRIPT: Final = """
const svg=document.querySelector('svg.flame'),all=[...svg.querySelectorAll('.f')],note=document.getElementById('note');
const at=e=>[+e.dataset.x,+e.dataset.w];
function zoom(to){const[x,w]=to?at(to):[0,1];for(const e of all){const[a,b]=at(e);
const s=Math.max((a-x)/w,0),t=Math.min((a+b-x)/w,1);e.style.display=t-s>1e-6?'':'none';
e.setAttribute('x',s*100+'%');e.setAttribute('width',Math.max(t-s,0)*100+'%');}}
svg.addEventListener('click',e=>{const f=e.target.closest('.f');if(f)zoom(f);});
svg.addEventListener('keydown',e=>{if(e.key==='Enter'){const f=e.target.closest('.f');if(f)zoom(f);}});
document.getElementById('all').onclick=()=>zoom(null);
document.getElementById('find').oninput=e=>{const q=e.target.value.toLowerCase();let n=0;
for(const f of all){const hit=q&&f.dataset.n.toLowerCase().includes(q);f.classList.toggle('found',hit);n+=hit;}
note.textContent=q?n+(n===1?' frame':' frames'):'';};
"""


@dataclass(slots=True)
class _Frame:
    name: str
    weight: int = 0
    inner: dict[str, _Frame] = field(default_factory=dict)


def _tree(folded: Folded) -> _Frame:
    root = _Frame("all")
    for frames, weight in folded.items():
        at = root
        at.weight += weight
        for name in frames:
            at = at.inner.setdefault(name, _Frame(one_line(name)))
            at.weight += weight
    return root


def _placed(frame: _Frame, start: float, whole: int, depth: int) -> Iterator[tuple[_Frame, float, float, int]]:
    """Yield each frame that is wide enough: itself, its x, its width (of 1), and its depth."""
    rest = [(frame, start, depth)]
    while rest:
        one, x, level = rest.pop()
        width = one.weight / whole
        if width < _NARROWEST:
            continue
        yield one, x, width, level
        for name in sorted(one.inner):
            rest.append((one.inner[name], x, level + 1))
            x += one.inner[name].weight / whole


def _fill(name: str) -> str:
    """Return the colour of a frame: the module selects the hue, the name the saturation."""
    module = name.partition("`")[0] if "`" in name else name
    hue = _HUES[zlib.crc32(module.encode()) % len(_HUES)]
    return f"hsl({hue} {45 + zlib.crc32(name.encode()) % 30}% var(--light))"


def svg(folded: Folded, title: str) -> str:
    """Return the graph as an SVG: the root at the bottom."""
    root = _tree(folded)
    title = one_line(title)
    placed = list(_placed(root, 0.0, root.weight, 0))
    height = _HEAD + _ROW * (1 + max(level for *_, level in placed))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="flame" width="100%" height="{height}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title><style>{_STYLE}</style>'
        f'<rect width="100%" height="100%" style="fill:var(--paper);stroke:none"/>'
        f'<text x="6" y="17" font-weight="bold">{escape(title)}</text>'
    )
    parts = [head]
    for frame, x, width, level in placed:
        name = escape(frame.name)
        label = name.partition("`")[2] or name
        what = f"{name}: {frame.weight:,} ({100 * frame.weight / root.weight:.2f} %)"
        parts.append(
            f'<svg class="f" tabindex="0" x="{100 * x:.4f}%" y="{height - _ROW * (level + 1)}" '
            f'width="{100 * width:.4f}%" height="{_ROW}" data-x="{x:.8f}" data-w="{width:.8f}" data-n="{name}">'
            f'<title>{what}</title><rect width="100%" height="{_ROW}" rx="2" style="fill:{_fill(frame.name)}"/>'
            f'<text x="4" y="13">{label if width > 4 * _NARROWEST else ""}</text></svg>'
        )
    return "".join(parts) + "</svg>\n"


def page(folded: Folded, title: str) -> str:
    """Return the graph as a page: a click enlarges a frame, and frames can be searched for."""
    title = one_line(title)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><style>'
        ":root{color-scheme:light dark}body{margin:0;font:14px system-ui,sans-serif;background:Canvas;color:CanvasText}"
        "form{display:flex;flex-wrap:wrap;gap:8px;padding:8px}input,button{font:inherit;padding:4px 8px}"
        "input{flex:1 1 12em;min-width:0}</style></head><body>"
        '<form onsubmit="return false"><input id="find" type="search" placeholder="find frames" '
        'aria-label="find frames"><button id="all" type="button">show all</button><output id="note"></output></form>'
        f"{svg(folded, title)}<script>{_SCRIPT}</script></body></html>\n"
    )
