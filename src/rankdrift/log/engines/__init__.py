"""What reads a log and runs plans: one protocol, a file or folder for each engine."""
