"""Dialects, the wire formats of model providers: request bodies, and translators of response streams."""
