"""Which questions an evaluation asks, and their answers."""
