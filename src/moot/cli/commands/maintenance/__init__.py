"""The commands for configuration, checks, backups and the database."""
