"""What every package may use: errors, files, SQL dialects, types, words."""
