"""Storage maintenance: sealing, verification, translation, backups, purges and redactions."""
