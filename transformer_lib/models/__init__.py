"""Whole models, each a page of the blocks beside it."""
