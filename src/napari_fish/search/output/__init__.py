"""Answers for people: tables, pages, figures, files."""
