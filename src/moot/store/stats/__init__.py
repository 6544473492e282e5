"""Usage statistics: one row for each finished answer, sums of these rows, and reports."""
