"""Conversations, projects and the message tree."""
