"""The first-run screen: list the available models and ask which one to use.

It is shown if no main model is configured, before the engine is opened. The chosen model is tested with one short call before it is
written to the configuration as `models.main`.
"""

__all__: list[str] = []
