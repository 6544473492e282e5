"""Approvals: policy, patterns of rules, requests to people, and their answers."""
