"""Files, databases and data exports of chat applications."""
