"""The algorithms, free of any framework."""
