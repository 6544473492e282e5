"""The formats `cline`, `roo` and `kilo-legacy`."""
