"""A project's folder: its files, its Git repository, and completion of `@file`."""
