"""The common base of the definitions of inlines and of translators."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from trapline.d import ast, typed
from trapline.d.declarations import Declarations
from trapline.d.scopes import Globals


@dataclass(slots=True, eq=False)
class Definer:
    """Defines names that stand for expressions over parameters."""

    _names: Globals
    _declarations: Declarations
    _check: Callable[[ast.Expression], typed.Node]
    _within: Callable[[tuple[typed.Parameter, ...]], AbstractContextManager[None]]
    """Makes names mean parameters while it is entered."""
