"""moot as an agent of the Agent Client Protocol (ACP), for editors and other programs that show agents.

The protocol's Python library dispatches requests and validates messages. moot reads and writes the lines itself (`wire.py`), because the
library doesn't answer lines that are not valid messages.
"""
