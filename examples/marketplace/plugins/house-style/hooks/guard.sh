#!/bin/sh
# Block commands that mention the folder for generated files.
if grep -q generated/; then
    echo "The folder generated/ is written by the build." >&2
    exit 2
fi
