"""Do the assumptions hold here? A check a file, and the verdict over all."""

from rankdrift.diagnosis.diagnosing import diagnose

__all__ = ["diagnose"]
