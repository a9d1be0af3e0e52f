"""CLAX: a row per session in Parquet, the docs shown and whether each was clicked."""

from rankdrift.log.formats.format import Fields, Format, unfolded
from rankdrift.log.layouts import LONG


class _Clax(Format):
    def select(self, f: Fields, source: str) -> str:
        """A row per doc of a session."""
        d = f.dialect
        return self.rows(
            f,
            unfolded(source, f.sql("query_doc_ids"), d),
            query=f.text("query_id") if f.find("query_id") else d.text.format("rd_doc"),
            doc=d.text.format("rd_doc"),
            rank="CASE WHEN rd_doc IS NOT NULL THEN rd_place END",
            click=f"CAST({d.element.format(f.sql('clicks'), 'rd_place')} AS BIGINT)",
        )


CLAX = _Clax(
    name="clax",
    title="CLAX sessions",
    schema="the Parquet files that CLAX reads",
    needs="columns query_doc_ids and clicks, lists of one length",
    shape={"query_id": "int", "query_doc_ids": ["int"], "clicks": ["int"]},
    marks=(("query_doc_ids", "clicks"),),
    reads="table",
    origins={
        "query": "query_id; without it query_doc_ids, as docs are then of a query",
        "doc": "query_doc_ids",
        "rank": "the place in query_doc_ids",
        "click": "clicks",
    },
    layout=LONG,
    read_again=True,
)
