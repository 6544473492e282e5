"""Work to be done: tasks of projects with their watchers, and cron jobs."""
