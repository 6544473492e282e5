"""The format `html`: one page that needs nothing else, runs no script and fetches nothing.

Everything in a conversation is untrusted. What is put into the page is escaped where it is put in (`elements.py`), Markdown is read with
HTML off, addresses become links only with a scheme that is known, pictures are shown only from `data:`; and the page's own policy allows
nothing but its one style, by hash, and pictures from `data:`.

| file | what it does |
|---|---|
| `format.py` | the format; what is heavy it loads when it writes |
| `page.py` | the page: head, contents, messages, other branches |
| `messages.py` | a message, with what was before it and what it took |
| `parts.py` | the parts of a message |
| `calls.py` | a tool call with its output |
| `markdown.py` | Markdown as HTML |
| `formulas.py` | formulas in Markdown, which are shown as they are written |
| `code.py` | code in colours |
| `elements.py` | elements with their attributes and text, escaped |
| `page.css` | how it looks, on a screen and on paper |
"""

__all__: list[str] = []
