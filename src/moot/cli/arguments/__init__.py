"""Command-line arguments: their declarations in command signatures, and the parser, help pages and completion derived from these."""

__all__: list[str] = []
