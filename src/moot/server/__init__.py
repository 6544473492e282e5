"""The HTTP server: shows the runtime to programs and to the page; decides nothing."""

__all__: list[str] = []
