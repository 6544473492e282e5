"""Pure translation between what vendors say, what moot keeps and what goes out again: no clock, no I/O, no configuration.

A vendor's raw events become chunks (`Translator`), chunks become the parts of a message (`fold`), parts become chunks again for a
client that joins late (`unfold`), and messages become the next request (`to_request`). Everything here is total: bytes that make no
sense end in an `Ending` with an error or are passed over, and never raise.

| file | what it holds |
|---|---|
| `fold.py` | chunks → parts, whole (`fold_parts`) or live (`Folder`); what of them is history (`in_history`) |
| `unfold.py` | a message → the fewest chunks that rebuild it |
| `versions.py` | chunks as a client of version 6 or 7 takes them |
| `history.py` | trimming by whole groups, token estimates, an assistant message as its steps |
| `openai_chat.py` | OpenAI chat completions: requests, and the way back |
| `openai_schema.py` | the same wire, with tools called by structured output, for small models |
| `anthropic_messages.py` | Anthropic messages: requests, and the way back |
"""

__all__: list[str] = []
