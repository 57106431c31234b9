"""Whole models, each built from the library's blocks in about a page of code."""
