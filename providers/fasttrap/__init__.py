"""The pid provider and the USDT back end: breakpoints in user programs."""

from __future__ import annotations

from providers.fasttrap.fasttrap import Fasttrap
from providers.fasttrap.pid import PidError, PidProbes, Wanted, parse_provider
from providers.fasttrap.port import PORTS
from providers.fasttrap.usdt import UsdtProbes, probe_name

__all__ = [
    "PORTS",
    "Fasttrap",
    "PidError",
    "PidProbes",
    "UsdtProbes",
    "Wanted",
    "parse_provider",
    "probe_name",
]
