"""Approvals: policy, rule patterns, requests to people, and their answers."""
