"""Pure translation between vendors' formats and moot's: no clock, no I/O, no configuration.

A vendor's raw events become chunks (`Translator`), chunks become the parts of a message (`fold`), parts become chunks again for a
client that joins late (`unfold`), and messages become the next request (`to_request`). Everything here is total: invalid input ends in an
`Ending` with an error or is ignored, and never raises.

| path | content |
|---|---|
| `dialects/` | wire formats of model providers: request bodies and stream translators |
| `agents/` | streams and session files of outside agents |
| `callers/` | moot as a model for other programs, in their dialects |
| the modules | chunks to parts and back, history, recordings, imports, images, JSON for the faces |

A translator's state is a NamedTuple of JSON values, which `json.dumps` accepts as it is.
"""

__all__: list[str] = []
