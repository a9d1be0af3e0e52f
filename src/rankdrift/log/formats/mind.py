"""MIND: a line per impression of news, with the news shown and whether each was clicked."""

from rankdrift.log.formats.format import LINES, Fields, Format, cut_lines, named, unfolded
from rankdrift.log.layouts import LONG


class _Mind(Format):
    def select(self, f: Fields, source: str) -> str:
        """A row per news shown."""
        d = f.dialect
        part = {n: d.element.format("e_parts", n) for n in range(1, 6)}
        date = d.part.format(part[3], "' '", 1)
        month, day, year = (d.part.format(date, "'/'", n) for n in (1, 2, 3))
        iso = f"concat({year}, '-', lpad({month}, 2, '0'), '-', lpad({day}, 2, '0'))"
        shown = named(
            f,
            cut_lines(f, source),
            e_id=d.integer.format(part[1]),
            e_user=part[2],
            e_day=d.text_day.format(iso),
            e_news=d.cut.format(d.trim.format(part[5]), "' '"),
        )
        clicked, passed = "rd_doc LIKE '%-1'", "rd_doc LIKE '%-0'"
        news = "substr(rd_doc, 1, length(rd_doc) - 2)"
        return self.rows(
            f,
            unfolded(shown, "e_news", d),
            search="e_id",
            doc=f"nullif(CASE WHEN {passed} OR {clicked} THEN {news} ELSE rd_doc END, '')",
            rank="CASE WHEN rd_doc IS NOT NULL THEN rd_place END",
            click=f"CASE WHEN {passed} THEN 0 WHEN {clicked} THEN 1 END",
            day="e_day",
            user="e_user",
        )


MIND = _Mind(
    name="mind",
    title="MIND, news recommendations",
    schema="behaviors.tsv of MIND (2020)",
    needs="behaviors.tsv",
    shape=LINES,
    reads="lines",
    line=r"\d+\t[^\t]+\t\d+/\d+/\d+ [^\t]+\t[^\t]*\t\S+-[01]( \S+-[01])*\s*",
    origins={
        "search": "Impression ID",
        "doc": "Impressions, before the dash",
        "rank": "the place in Impressions, which is not the rank: see the note",
        "click": "Impressions, after the dash",
        "day": "the date of Time",
        "user": "User ID",
    },
    layout=LONG,
    roles={"query": "doc"},
    kinds={"search": "int"},
    remark="Its authors shuffled the news of every impression, so places say nothing about ranks: "
    "a flat curve is the right answer, and no bias can be learned from it.",
)
