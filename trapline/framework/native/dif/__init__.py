"""DIF objects as machine code."""
