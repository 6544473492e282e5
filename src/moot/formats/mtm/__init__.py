"""The formats `mtm` and `mtm-1`: notebooks of Mutsumi, and of its fork that counts its format's versions.

| file | what it does |
|---|---|
| `format.py` | `Mtm`, `MtmOne`: where they lie, what they look like |
| `reading.py` | a notebook of either shape as a conversation |
| `openai_shape.py` | the messages of the unversioned shape |
| `native_shape.py` | the messages of version 1 |
| `configuration.py` | its settings, which are an editor's, as pieces of ours |
| `attachments.py` | pictures as links in the text, and snapshots of context |
| `writing.py` | a conversation as a notebook |
| `writing_one.py` | the same in version 1 |
"""

__all__: list[str] = []
