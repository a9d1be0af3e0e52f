"""Do the assumptions hold here? A check a file (`checks`), and the verdict over all of them."""

from rankdrift.diagnosis.diagnosing import Check, Diagnosis, diagnose

__all__ = ["Check", "Diagnosis", "diagnose"]
