"""DIF's subroutines as machine code."""
