"""The HTTP server: the runtime over HTTP, and the web page.

A request passes the middleware, then its route, which declares the required scope by one of four dependencies of `auth`. Routes access
users' data only through `caller.store`. Every error becomes an RFC 9457 problem.
"""

__all__: list[str] = []
