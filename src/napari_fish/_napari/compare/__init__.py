"""The query and what was found, side by side or on their slides."""
