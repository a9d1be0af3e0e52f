"""Log -> Counts: the one step that reads big data."""

from rankdrift.harvesting.by_day import harvest_by_day
from rankdrift.harvesting.counting import harvest

__all__ = ["harvest", "harvest_by_day"]
