"""Databases of every format there was, as the program of their day left them."""
