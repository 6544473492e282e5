"""YAML, environment and flags become one frozen `Settings`; nothing else of moot reads a configuration.

`load` lays the layers over each other, replaces `${VAR}`, checks the result against the schema and builds the settings; it says of
every value which layer decided it. `Loader` keeps the last good one through reloads.

| file | what it does |
|---|---|
| `settings.py` | the frozen values |
| `home.py` | where moot lives, the vendors' own key variables |
| `tree.py` | values that know where they were written |
| `files.py` | the text of a file |
| `document.py` | YAML text to a tree |
| `layers.py` | environment and flags as trees, merging |
| `interpolation.py` | `${VAR}` |
| `sections.py` | the sections' names |
| `schema.py` | the shape of the file (pydantic), strict |
| `checking.py` | tree against schema: problems in words, with suggestions |
| `secret.py` | which values are never shown |
| `remembered.py` | what reading and checking came to, for the next process |
| `building.py` | checked values to `Settings` |
| `loading.py` | `load` and `Loader` |
| `writing.py` | sets a value, keeping comments and order |
| `rules.py` | adds and removes rules of the permissions |
"""

__all__: list[str] = []
