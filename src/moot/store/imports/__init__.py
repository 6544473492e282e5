"""Importing into SQLite: complete recordings, and conversations in batches. Importing the same batch again changes nothing.

A source's message is identified by its id in the source and a digest of its raw bytes. Known entries are skipped; new, changed and extended
ones are added. Each batch is a short transaction that also stores which entries are known: if a process dies, the next import continues.
"""
