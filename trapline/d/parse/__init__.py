"""The first pass of the D compiler: text to syntax trees.  It knows no types and no names.

What a word is may depend on the names of types (`lexer.Names`), which the caller answers for.
"""
