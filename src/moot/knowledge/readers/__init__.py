"""Readers of document formats. They run only in a worker process, because documents may be malicious.

The functions take the document's bytes and yield its text in order, with the place of each piece: `page 3`, `slide 2`, or empty.
Each library that they need is imported by one module, so that a worker imports only one of them.
"""
