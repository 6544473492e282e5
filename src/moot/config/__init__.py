"""Load YAML files, environment variables and command-line flags into one frozen `Settings`.

`load` merges the layers, replaces `${VAR}`, validates the result and builds the settings. It records which layer each value comes from.
`Loader` keeps the last valid settings if a reload fails. No other package of moot reads the configuration.
"""

__all__: list[str] = []
