"""Prepare prompts before they are sent: attach files, and resolve references in their text."""
