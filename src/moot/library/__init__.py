"""moot for programs: the face that `import moot` shows, over the same runtime and the same store as the command line."""

__all__: list[str] = []
