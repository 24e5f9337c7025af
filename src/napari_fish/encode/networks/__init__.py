"""Networks that look at a patch."""
