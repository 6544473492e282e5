"""A project's folder: its files, Git, and completion of `@file`."""
