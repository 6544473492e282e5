"""The processes of a server: one, or a supervisor with several workers."""
