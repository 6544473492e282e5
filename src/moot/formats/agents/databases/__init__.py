"""Coding agents that store their sessions in databases."""
