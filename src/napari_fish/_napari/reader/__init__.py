"""Slides become lazy layers."""
