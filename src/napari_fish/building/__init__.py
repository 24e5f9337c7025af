"""Folder → database: one slide = one job = one transaction; and the care of databases."""
