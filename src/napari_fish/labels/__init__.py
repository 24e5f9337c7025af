"""Label files: what people know of their slides."""
