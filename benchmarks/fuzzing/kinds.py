"""Kinds of files: sound ones to begin with, how they are changed, and all that the program does with one."""

from . import database_kinds, encoder_kinds, given_kinds, slide_kinds

KINDS = slide_kinds.KINDS | database_kinds.KINDS | encoder_kinds.KINDS | given_kinds.KINDS
