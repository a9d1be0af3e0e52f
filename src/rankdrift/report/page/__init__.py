"""Pages that need nothing but a browser: the report, and an inspection."""
