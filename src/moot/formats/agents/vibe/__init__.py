"""The formats `vibe` and `vibe-old`."""
