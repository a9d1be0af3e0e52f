"""Log -> Counts: the one step that reads big data."""

from rankdrift.harvesting.counting import harvest, harvest_by_day

__all__ = ["harvest", "harvest_by_day"]
