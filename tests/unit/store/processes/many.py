"""Start processes faster than an interpreter starts: everything is imported, nothing is open, and each line of stdin forks one.

A line is `out-file name argument…` and is answered with the child's pid; `wait` is answered with the exit statuses of all children so far.
"""

import asyncio
import os
import sys

import starter
import writer

MAINS = {"starter": starter.main, "writer": writer.main}


def become(out: str, name: str, *arguments: str) -> None:
    os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT), 1)
    os.dup2(1, 2)
    asyncio.run(MAINS[name](*arguments))
    sys.exit(0)


children: list[int] = []
while line := sys.stdin.readline().split():
    if line == ["wait"]:
        answer = " ".join(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) for child in children)
        children.clear()
    else:
        if (child := os.fork()) == 0:
            become(*line)
        children.append(child)
        answer = str(child)
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()
