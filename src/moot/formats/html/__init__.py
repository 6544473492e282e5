"""The format `html`: a single, self-contained page that runs no scripts and loads nothing from elsewhere.

Everything in a conversation is untrusted. Text is escaped where it enters the page, HTML in Markdown is not interpreted, only addresses
with a known scheme become links, and only `data:` pictures are shown. The page's Content-Security-Policy allows only its own
style sheet, identified by its hash, and `data:` pictures.
"""

__all__: list[str] = []
