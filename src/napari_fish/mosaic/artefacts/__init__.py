"""Ink, folds, debris and blur: what is measured on patches, and which of them are left out."""
