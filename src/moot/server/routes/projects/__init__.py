"""Routes for projects, their files and their tasks."""
