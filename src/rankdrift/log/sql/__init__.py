"""SQL for any engine: what values mean, and the steps of a plan."""
