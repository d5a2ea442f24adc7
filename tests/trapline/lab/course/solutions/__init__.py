"""Model solutions of the sheets, and typical wrong answers; the wheel has neither."""
