"""Copying the agents' folders of other machines over ssh, and importing them. Nothing is written or installed on these machines.

A machine needs only sshd, a POSIX shell, `head`, `tail` and `find`. What it sends is not trusted.
"""
