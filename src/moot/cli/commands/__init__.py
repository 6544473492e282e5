"""The commands, one module per group. `moot.cli.tree` lists them."""
