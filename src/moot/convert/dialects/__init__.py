"""Wire formats of model providers: request bodies, and translators of their streams."""
