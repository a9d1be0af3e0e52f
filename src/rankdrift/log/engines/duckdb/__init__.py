"""The engine that comes along."""
