"""Prompts before they are sent: attached files, and references in their text."""
