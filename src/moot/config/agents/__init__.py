"""Agent definitions: built-in ones, Markdown files of the home and of projects, and the translation of other programs' files."""
