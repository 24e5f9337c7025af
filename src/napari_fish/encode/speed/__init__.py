"""How networks are made fast on the machine at hand."""
