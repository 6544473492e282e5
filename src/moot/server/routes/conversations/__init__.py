"""Conversations over HTTP: the resource itself, its messages, chat streams, context and replay."""
