"""Pure translation between vendors' formats and moot's: no clock, no I/O, no configuration.

A vendor's raw events become chunks (`Translator`), chunks become the parts of a message (`fold`), parts become chunks again for a client
that joins late (`unfold`), and messages become the next request (`to_request`). Everything here is total: invalid input is ignored or ends
in an `Ending` with an error, and never raises an exception.

A translator's state is a NamedTuple of JSON values, which `json.dumps` accepts directly.
"""

__all__: list[str] = []
