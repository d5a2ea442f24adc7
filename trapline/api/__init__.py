"""The functions behind `import trapline`, one module for each; see `help(trapline)`."""
