"""Plugins that a person has installed: folders with commands, agents, skills, hooks and MCP servers.
A plugin is used as long as it doesn't change.
"""
