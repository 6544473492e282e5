"""Stored bytes: blobs of conversations, and checkpoints of the files that agents change."""
