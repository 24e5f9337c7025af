"""A memory-mapped copy of a catalogue, made for searching; disposable."""
