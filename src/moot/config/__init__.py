"""Load YAML files, environment variables and command-line flags into one frozen `Settings`.

`load` merges the layers, replaces `${VAR}`, validates the result and builds the settings. It records which layer each value comes from.
`Loader` keeps the last valid settings when a reload fails. No other room reads configuration.

| file | contents |
|---|---|
| `settings.py` | the frozen settings |
| `home.py` | moot's home folder and the vendors' API key variables |
| `tree.py` | values with the place where they were written |
| `files.py` | the text of a file |
| `document.py` | YAML parsing |
| `layers.py` | environment and flags as trees; merging |
| `interpolation.py` | `${VAR}` references |
| `sections.py` | names of the sections |
| `schema.py` | strict pydantic models of the file |
| `checking.py` | validation with readable errors and suggestions |
| `secret.py` | detection and masking of secrets |
| `remembered.py` | cache of parsed and validated configurations |
| `building.py` | validated values to `Settings` |
| `loading.py` | `load` and `Loader` |
| `writing.py` | changes to the file that keep comments and order |
| `rules.py` | adding and removing permission rules |
"""

__all__: list[str] = []
