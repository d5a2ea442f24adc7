"""Tools that know nothing of an emulated machine."""
