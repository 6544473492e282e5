"""Agent services: the code that runs one `agent_type` each."""

__all__: list[str] = []
