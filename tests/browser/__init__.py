"""The page in a real browser, with the real server and a scripted model."""
