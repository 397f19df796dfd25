"""Proofreading: edits at any scale, kept in a directory from which nothing is lost."""
