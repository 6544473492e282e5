"""moot: one home for every AI agent's conversations."""
