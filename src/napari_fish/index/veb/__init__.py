"""The paper's own structure: guided search over a van Emde Boas tree."""
