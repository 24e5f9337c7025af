"""The paper's guided search, over sorted keys."""
