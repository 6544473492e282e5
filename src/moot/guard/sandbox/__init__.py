"""The operating system's sandbox for commands that a model runs: bubblewrap, namespaces, or Landlock with seccomp."""

__all__: list[str] = []
