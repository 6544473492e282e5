"""The model endpoints: vendors, servers on the user's machine, custom ones, and the embedded model."""
