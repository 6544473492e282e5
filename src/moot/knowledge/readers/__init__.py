"""Readers of document formats. They run only in a worker process, because documents may be malicious.

Each module has `read(data)`, which yields the text in order, with the place of each piece: `page 3`, `slide 2`, or empty.
"""
