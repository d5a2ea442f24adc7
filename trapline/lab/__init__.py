"""What only a simulator can do: every probe site shown, one firing taken apart."""
