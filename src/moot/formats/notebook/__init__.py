"""The format `ipynb`: Jupyter notebooks, and the outputs in which moot's kernel shows answers."""

__all__: list[str] = []
