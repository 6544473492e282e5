"""The first-run screen: list the available models and ask which one to use.

It is shown before the engine is opened, when no main model is configured. The chosen model is tried with one small call before it is
written to the configuration as `models.main`.
"""

__all__: list[str] = []
