"""Runs statements as BigQuery reads them, in a Python that has the package `zetasql`: Google's own
analyser and reference implementation of GoogleSQL.

    PYTHON googlesql.py CASES.json

CASES.json is a list of {"statement", "table", "columns": {name: shape}, "rows"}: a shape is "text",
"int", "float", "bool" or "date", {name: shape} of a struct, [shape] of a list. Prints, as JSON, the
names and the rows that each gives, as texts. It knows nothing of ours, which is not in that Python.
"""

import datetime
import json
import re
import sys

from zetasql import api
from zetasql.api.type_factory import TypeFactory
from zetasql.types import (
    AnalyzerOptions,
    LanguageOptions,
    TypeKind,
    Value,
    ZetaSQLBuiltinFunctionOptions,
)

KINDS = {
    "text": "TYPE_STRING", "int": "TYPE_INT64", "float": "TYPE_DOUBLE", "bool": "TYPE_BOOL",
    "date": "TYPE_DATE",
}  # fmt: skip
EPOCH = datetime.date(1970, 1, 1)
# Names that BigQuery has for INT64, and the library has not.
ALIASES = re.compile(r"\b(BIGINT|INTEGER)\b")


def type_of(shape):
    if isinstance(shape, list):
        return TypeFactory.create_array_type(type_of(shape[0]))
    if isinstance(shape, dict):
        fields = [(name, type_of(inner)) for name, inner in shape.items()]
        return TypeFactory.create_struct_type(fields)
    return TypeFactory.create_simple_type(getattr(TypeKind, KINDS[shape]))


def value_of(value, shape):
    if value is None:
        return Value()
    if isinstance(shape, list):
        elements = [value_of(each, shape[0]) for each in value]
        return Value(array_value=Value.Array(element=elements))
    if isinstance(shape, dict):
        fields = [value_of(value.get(name), inner) for name, inner in shape.items()]
        return Value(struct_value=Value.Struct(field=fields))
    return {
        "text": lambda: Value(string_value=value),
        "int": lambda: Value(int64_value=value),
        "float": lambda: Value(double_value=value),
        "bool": lambda: Value(bool_value=value),
        "date": lambda: Value(date_value=(datetime.date.fromisoformat(value) - EPOCH).days),
    }[shape]()


def text_of(cell):
    if cell.bool_value is not None:
        return str(cell.bool_value).lower()
    told = (cell.string_value, cell.int64_value, cell.double_value)
    return next((str(value) for value in told if value is not None), "")


def run(case, language):
    columns = case["columns"]
    table = api.TableBuilder(case["table"])
    for name, shape in columns.items():
        table = table.add_column(name, type_of(shape))
    functions = ZetaSQLBuiltinFunctionOptions(language_options=language)
    catalog = api.CatalogBuilder("shop").add_table(table.build()).with_builtin_functions(functions)
    content = api.create_table_content([[None] * len(columns) for _ in case["rows"]])
    for made, row in zip(content.table_data.row, case["rows"], strict=True):
        made.cell[:] = [value_of(row[name], shape) for name, shape in columns.items()]
    query = (
        api.PreparedQuery.builder()
        .set_sql(ALIASES.sub("INT64", case["statement"]))
        .set_analyzer_options(AnalyzerOptions(language_options=language))
        .set_catalog(catalog.build())
        .set_table_content({case["table"]: content})
        .prepare()
    )
    rows = query.execute().content.table_data.row
    header = [column.name for column in query.columns]
    return [header, *([text_of(cell) for cell in row.cell] for row in rows)]


if __name__ == "__main__":
    language = LanguageOptions.maximum_features()
    with open(sys.argv[1]) as file:
        cases = json.load(file)
    print(json.dumps([run(case, language) for case in cases]))
