"""Command-line arguments: the declarations in command signatures, and the parser, help and completion derived from them."""

__all__: list[str] = []
