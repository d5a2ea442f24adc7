"""The last pass of the D compiler: checked statements to actions, typed trees to DIF."""
