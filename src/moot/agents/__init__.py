"""Agent services, each of which runs one `agent_type`."""

__all__: list[str] = []
