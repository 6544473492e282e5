"""Pure conversion between vendors' formats and moot's: no clock, no I/O, no configuration.

A vendor's raw events become chunks (`Translator`), chunks become the parts of a message (`fold`), parts become chunks again for a client
that joins late (`unfold`), and messages become the next request (`to_request`). Translators never raise an exception: invalid input is
ignored or reported as an error in the `Ending`.

A translator's state is a NamedTuple of JSON values, so it can be passed to `json.dumps`.
"""

__all__: list[str] = []
