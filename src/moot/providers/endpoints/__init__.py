"""The providers: vendors, servers on the user's machine, custom endpoints, and the embedded model."""
