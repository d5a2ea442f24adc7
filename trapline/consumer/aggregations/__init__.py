"""The consumer's aggregations: merged, ordered, printed."""
