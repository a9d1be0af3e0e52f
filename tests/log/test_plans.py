"""Plans: which of a plan's tables no later step reads."""

from rankdrift.log.sql.plan import Step, spent


def test_what_no_later_step_reads_is_spent():
    steps = [
        Step("rows", "SELECT * FROM log", keep=True),
        Step("some", "SELECT * FROM rows"),  # read wherever it is named
        Step("added", "SELECT count(*) FROM some", keep=True, adds=True),
        Step("cells", "SELECT * FROM some", keep=True),
        Step("result", "SELECT 'rows' AS kind FROM cells, added"),
    ]
    assert spent(steps) == {"cells": ["rows"], "result": ["cells"]}
    assert spent([*steps[:-1], Step("result", "SELECT * FROM cells, some")])["result"] == [
        "rows",
        "cells",
    ]
