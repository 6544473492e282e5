"""The format `tai`: sessions and configuration of TAI (tailored-ai), stored in `agent.db` and `config.yaml`."""

__all__: list[str] = []
