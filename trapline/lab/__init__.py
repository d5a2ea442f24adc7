"""The laboratory: lists of probe sites, checks of rules, and firings in stages."""
