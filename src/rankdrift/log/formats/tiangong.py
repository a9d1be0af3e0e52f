"""TianGong-ST: sessions of Sogou in XML, an element a line."""

from rankdrift.log.formats.format import FILE_NAME, LINES, Fields, Format, Sight, named, told_by
from rankdrift.log.layouts import EVENTS

_MARKS = ("<session num=", "<interaction num=", "<query_id>", "<result rank=", "<docid>")
_TOLD = "<(docid>|result |rank>|clicked|query_id>|interaction |session )"


class _Tiangong(Format):
    def recognises(self, sight: Sight) -> bool:
        lines = "\n".join(sight.lines)
        return all(mark in lines for mark in _MARKS)

    def select(self, f: Fields, source: str) -> str:
        """A row per result, and per click. What a line belongs to is told by those before it."""
        d, since = f.dialect, f.dialect.so_far.format(FILE_NAME, "e_line")

        def there(tag: str) -> str:
            return f"{d.find.format('line', d.literal(tag))} > 0"

        def until(end: str, after: str) -> str:  # a pattern takes ten times as long
            return f"substr({after}, 1, {d.find.format(after, d.literal(end))} - 1)"

        def text(tag: str) -> str:
            after = f"substr(line, {d.find.format('line', d.literal(tag))} + {len(tag)})"
            return f"CASE WHEN {there(tag)} THEN nullif({until('<', after)}, '') END"

        def attribute(tag: str, name: str) -> str:
            begin = f"{d.find.format('line', d.literal(f'{name}='))} + {len(name) + 2}"
            after = f"replace(substr(line, {begin}), {d.literal(chr(39))}, '\"')"
            value = until('"', after)
            return f"CASE WHEN {there(tag)} THEN nullif({value}, '') END"

        def last(name: str, at: str) -> str:
            value = f"coalesce({d.text.format(name)}, '')"  # engines differ in what NULL does here
            return f"nullif(max_by({value}, CASE WHEN {at} THEN e_line END) {since}, '')"

        lines = named(
            f,
            f"{source} WHERE {d.matches.format('line', d.literal(_TOLD))}",
            e_line="rd_line",
            e_session=attribute("<session ", "num"),
            e_asked=attribute("<interaction ", "num"),
            e_query=text("<query_id>"),
            e_rank=attribute("<result ", "rank"),
            e_doc=text("<docid>"),
            e_clicked=there("<clicked"),
            e_click=text("<rank>"),
        )
        begins = "e_asked IS NOT NULL OR e_query IS NOT NULL"  # the query before it is over
        said = (
            f"(SELECT *, {last('e_line', 'e_asked IS NOT NULL')} AS rd_asked,"
            f" {last('e_session', 'e_session IS NOT NULL')} AS rd_session,"
            f" {last('e_query', begins)} AS rd_query,"
            f" {last('e_rank', 'e_rank IS NOT NULL OR e_clicked')} AS rd_rank"
            f" FROM {lines}) AS rd_said"
        )
        shown = "e_click IS NULL AND e_doc IS NOT NULL AND rd_rank IS NOT NULL"
        acts = named(
            f,
            f"{said}\nWHERE e_click IS NOT NULL OR ({shown})",
            e_event="CASE WHEN e_click IS NULL THEN 'result' ELSE 'click' END",
            e_asked="rd_asked",
            e_session="rd_session",
            e_query="rd_query",
            e_rank=d.integer.format("coalesce(e_click, rd_rank)"),
            e_doc="CASE WHEN e_click IS NULL THEN e_doc END",
        )
        place = told_by((FILE_NAME, "e_asked", "e_rank"), d)
        doc = f"max(e_doc) OVER (PARTITION BY {place})"
        return self.rows(
            f,
            acts,
            event="e_event",
            query="e_query",
            search=f"concat({FILE_NAME}, ' ', e_asked)",
            doc=f"coalesce(e_doc, {doc})",
            rank="e_rank",
            session="e_session",
        )


TIANGONG = _Tiangong(
    name="tiangong-st",
    title="TianGong-ST",
    schema="the sessions in XML (2019), as the reader of its authors takes them (CACM, 2020)",
    needs="the XML file, with a line per element",
    shape=LINES,
    reads="lines",
    origins={
        "event": "'result' for result, 'click' for click",
        "query": "query_id of the interaction",
        "search": "the file, and which of its interactions it is",
        "doc": "docid of the result; of a click, that of the result with its rank",
        "rank": "rank of the result, and of the click",
        "session": "num of the session",
    },
    layout=EVENTS,
    shown_events=("result",),
    click_events=("click",),
    keeps_order=True,
)
