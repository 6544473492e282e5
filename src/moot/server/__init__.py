"""The HTTP server: the API for conversations and runs, and the web page.

A request passes the middleware and then reaches its route. Each route declares the scope it requires with a dependency from `auth`, such
as `Reader`. Routes access users' data only through `caller.store`. Every error is returned as an RFC 9457 problem.
"""

__all__: list[str] = []
