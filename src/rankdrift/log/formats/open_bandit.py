"""The Open Bandit Dataset: a row per item shown in a slot, with the propensity of its choice."""

from rankdrift.log.formats.format import Fields, Format
from rankdrift.log.layouts import LONG


class _OpenBandit(Format):
    def select(self, f: Fields, source: str) -> str:
        """A row per item shown."""
        return self.rows(
            f,
            source,
            doc=f.text("item_id"),
            rank=f.whole("position"),
            click=f.whole("click"),
            timestamp=f.instant(("timestamp",)),
            propensity_score=f.number("propensity_score"),
        )


OPEN_BANDIT = _OpenBandit(
    name="open-bandit",
    title="Open Bandit",
    schema="the CSV files of the Open Bandit Dataset (2020)",
    needs="item_id, position, click and propensity_score, of one campaign",
    shape={
        "timestamp": "text",
        "item_id": "text",
        "position": "int",
        "click": "int",
        "propensity_score": "float",
    },
    marks=(("item_id", "position", "click", "propensity_score"),),
    reads="table",
    origins={
        "doc": "item_id; the query, too, as there are none: errors go by docs",
        "rank": "position",
        "click": "click",
        "timestamp": "timestamp",
        "propensity_score": "propensity_score, of the choice of the item and not of its rank",
    },
    layout=LONG,
    roles={"query": "doc"},
)
