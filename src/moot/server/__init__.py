"""The HTTP server: shows the runtime to programs and to the page; decides nothing.

A request passes the `borders`, then its route, which knows its `Caller` by one of four dependencies of `auth`. Routes take what belongs
to somebody from `caller.store` and from nowhere else. Every error becomes a problem (`problems`).
"""

__all__: list[str] = []
