"""The common part of several test packages."""
