"""Security checks at the borders between moot and what it does not trust: files, network, processes, terminal text, secrets.

Models, tools, projects and the web are untrusted. All their access to files, URLs, child processes, logs and screens goes through
functions of this package.
"""

__all__: list[str] = []
