"""Imports on SQLite: complete recordings, and conversations in batches that can be repeated any number of times.

A message of a source is identified by its id there and a digest of its raw bytes, so that repeated entries are recognized and skipped; new,
changed and extended ones are added. Each batch is a short transaction that also stores what is known about the source: if a process dies,
the next one continues.
"""
