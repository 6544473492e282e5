"""The format `html`: one self-contained page that runs no scripts and fetches nothing.

Everything in a conversation is untrusted. Text is escaped where it enters the page, HTML in Markdown is not interpreted, only addresses
with a known scheme become links, and only `data:` pictures are shown. The page's own policy allows nothing but its one style sheet, by
hash, and pictures from `data:`.
"""

__all__: list[str] = []
