"""The commands of `moot cron`."""

from __future__ import annotations

from moot.cli.tree.nodes import Group, command

CRON = Group(
    "Run prompts on a schedule.",
    {
        "add": command(
            "commands.cron:add_job",
            "Add a cron job.",
            (
                'moot cron add standup --cron "0 9 * * 1-5" --prompt "What changed since yesterday?"',
                'moot cron add check --every 30m --prompt "Is the build green?" --agent reviewer --delivery tool',
                'moot cron add party --at 2026-12-24T18:00 --tz Europe/Berlin --prompt "Send my wishes."',
            ),
            details="Jobs run while `moot serve` is running. A running server applies changes immediately.",
        ),
        "list": command("commands.cron:list_jobs", "List jobs with their next and last runs.", ("moot cron list", "moot cron list --json")),
        "show": command("commands.cron:show_job", "Show the settings, next run and last run of a job.", ("moot cron show standup",)),
        "next": command("commands.cron:next_times", "Show the next scheduled times of a job.", ("moot cron next standup -n 10",)),
        "run": command(
            "commands.cron:run_job",
            "Run a job now and show the answer.",
            ("moot cron run standup",),
            details="The run appears in the job's history, and its answer is delivered like that of a scheduled run.",
        ),
        "pause": command("commands.cron:pause_job", "Pause a job.", ("moot cron pause standup",)),
        "resume": command("commands.cron:resume_job", "Resume a paused job.", ("moot cron resume standup",)),
        "remove": command(
            "commands.cron:remove_job", "Remove a job. Its history and conversations are kept.", ("moot cron remove standup",)
        ),
        "history": command(
            "commands.cron:history",
            "Show the runs of one job or of all jobs, newest first.",
            ("moot cron history standup", "moot cron history --json"),
        ),
    },
    ('moot cron add standup --cron "0 9 * * 1-5" --prompt "What changed since yesterday?"', "moot cron list"),
)
