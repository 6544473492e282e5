"""Formats of coding agents in editors."""
