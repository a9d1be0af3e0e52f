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
        """A row per result, and per click. What a line belongs to is told by those before it, and
        the doc of a click by the result that has its rank."""
        d = f.dialect

        def there(tag: str) -> str:
            return f"{d.find.format('line', d.literal(tag))} > 0"

        def until(end: str, after: str) -> str:  # a pattern takes ten times as long
            return f"substr({after}, 1, {d.find.format(after, end)} - 1)"

        def text(tag: str) -> str:
            after = f"substr(line, {d.find.format('line', d.literal(tag))} + {len(tag)})"
            return f"CASE WHEN {there(tag)} THEN nullif({until(d.literal('<'), after)}, '') END"

        def attribute(tag: str, name: str) -> str:
            begin = f"{d.find.format('line', d.literal(f'{name}='))} + {len(name) + 2}"
            quote = f"substr(line, {begin} - 1, 1)"
            value = until(quote, f"substr(line, {begin})")
            return f"CASE WHEN {there(tag)} THEN nullif({value}, '') END"

        def last(value: str, at: str) -> str:
            return d.last_so_far.format(f"CASE WHEN {at} THEN {value} END", FILE_NAME, "e_line")

        lines = named(
            f,
            f"{source} WHERE {d.matches.format('line', d.literal(_TOLD))}",
            e_line="rd_line",
            e_session=attribute("<session ", "num"),
            e_asked=there("<interaction "),
            e_query=text("<query_id>"),
            e_rank=attribute("<result ", "rank"),
            e_doc=text("<docid>"),
            e_clicked=there("<clicked"),
            e_click=text("<rank>"),
        )
        begins = "e_asked OR e_query IS NOT NULL"  # the query before it is over
        said = (
            f"(SELECT *, {last('e_line', 'e_asked')} AS rd_asked,"
            f" {last('e_session', 'e_session IS NOT NULL')} AS rd_session,"
            f" {last(_or_empty('e_query'), begins)} AS rd_query,"
            f" {last(_or_empty('e_rank'), 'e_rank IS NOT NULL OR e_clicked')} AS rd_rank"
            f" FROM {lines}) AS rd_said"
        )
        acts = named(
            f,
            f"{said}\nWHERE e_click IS NOT NULL OR (e_doc IS NOT NULL AND rd_rank <> '')",
            a_line="e_line",
            a_asked="rd_asked",
            a_session="rd_session",
            a_query="nullif(rd_query, '')",
            a_click="e_click IS NOT NULL",
            a_rank=d.integer.format("coalesce(e_click, rd_rank)"),
            a_doc="CASE WHEN e_click IS NULL THEN e_doc END",
        )
        file = [FILE_NAME] if FILE_NAME in f.shape else []
        place = ("a_asked", "a_rank", *file)
        same = " AND ".join(f"rd_clicks.{name} = rd_results.{name}" for name in place)
        kept = ", ".join(f"rd_clicks.{name}" for name in ("a_line", "a_session", "a_query", *place))
        clicks = (
            f"(SELECT {kept}, max(rd_results.a_doc) AS a_doc\n"
            "FROM (SELECT * FROM rd_acts WHERE a_click) AS rd_clicks LEFT JOIN\n"
            f"(SELECT * FROM rd_acts WHERE NOT a_click) AS rd_results ON {same}\n"
            f"GROUP BY {kept}) AS rd_clicked"
        )
        common = {
            "query": "a_query",
            "search": told_by((*file, "a_asked"), d),
            "doc": "a_doc",
            "rank": "a_rank",
            "session": "a_session",
        }
        results = self.rows(f, "rd_acts WHERE NOT a_click", event="'result'", **common)
        return f"WITH rd_acts AS (SELECT * FROM {acts})\n{results}\nUNION ALL\n" + self.rows(
            f, clicks, event="'click'", **common
        )


def _or_empty(name: str) -> str:
    return f"coalesce({name}, '')"


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
    kinds={"search": "int"},
)
