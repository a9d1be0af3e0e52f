import pytest

from rankdrift.core.errors import BadOption, MissingColumns
from rankdrift.log.assigning import assign
from rankdrift.log.columns import SYNONYMS, Column, Roles
from rankdrift.log.layouts import LAYOUTS


def columns(**kinds):
    """Columns by name and kind; two underscores go down into a struct."""
    found = [Column(tuple(name.split("__")), kind) for name, kind in kinds.items()]
    return {column.name: column for column in found}


LONG = columns(query="text", doc="text", rank="int", click="int")
LIST = columns(query="text", results="list", clicked="list")
EVENTS = columns(
    user_query="text", query_id="text", action_name="text", timestamp="timestamp",
    event_attributes__object__object_id="text", event_attributes__position__ordinal="int",
)  # fmt: skip


def roles(found, **given):
    return assign(found, given)[1]


def layout(found, wanted="auto", **given):
    return assign(found, given, wanted)[0].name


def test_layouts_are_told_apart_by_their_columns():
    assert layout(LONG) == "long"
    assert layout(LIST) == "list"
    assert layout(EVENTS) == "events"
    both = LONG | LIST
    assert layout(both) == "long"
    assert layout(both, shown="results", rank=None) == "list"
    assert layout(both, "list") == "list"


def test_events_of_opensearch_are_read_as_they_come():
    found = roles(EVENTS)
    assert found.query == ("user_query",)
    assert found.search == "query_id"
    assert found.doc == "event_attributes.object.object_id"
    assert found.rank == "event_attributes.position.ordinal"
    assert (found.event, found.day) == ("action_name", "timestamp")


def test_a_query_id_is_no_search_in_a_long_log():
    assert roles(LONG | columns(query_id="text", visit="text")).search is None
    # A session is several searches, but better than nothing.
    assert roles(LONG | columns(query_id="text", session_id="text")).search == "session_id"
    assert roles(LONG | columns(session_id="text", request_id="text")).search == "request_id"
    assert roles(LONG | columns(search_id="text")).search == "search_id"


def test_what_was_guessed_is_told_apart_from_what_was_named():
    _, found, guessed = assign(LONG | columns(date="date", price="float"), {"doc": "price"}, "auto")
    assert found.doc == "price"
    assert guessed == {"query": "query", "rank": "rank", "click": "click", "day": "date"}


def test_an_empty_name_means_that_there_is_none():
    more = LONG | columns(date="date", search_id="text")
    found = roles(more, day="", search="", same=(), segment=None)
    assert (found.day, found.search, found.same, found.segment) == (None, None, (), ())
    with pytest.raises(MissingColumns, match="--doc"):
        roles(more, doc="")


def test_a_column_that_another_option_names_is_not_guessed():
    with pytest.raises(MissingColumns, match="'rank' is that of --ranker"):
        roles(LONG, ranker="rank")


def test_a_segment_or_an_equal_column_may_be_the_query_or_the_day_too():
    found = roles(LONG | columns(day="date"), segment=("query", "day"), same="doc")
    assert (found.query, found.doc, found.day) == (("query",), "doc", "day")


def test_pages_and_segments_are_never_guessed():
    found = roles(LONG | columns(page="int", segment="text", same="text"))
    assert (found.page, found.segment, found.same) == (None, (), ())


def test_one_column_may_be_named_for_two_roles():
    found = roles(LONG, query=("query", "doc"), doc="doc", segment="query")
    assert found.query == ("query", "doc") and found.doc == "doc" and found.segment == ("query",)
    assert found.used() == ["query", "doc", "rank", "click"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("quary", "Did you mean 'query'?"), ("QUERY", "Did you mean 'query'?"), ("zzz", "")],
)
def test_a_name_that_is_not_there(name, hint):
    with pytest.raises(MissingColumns) as error:
        roles(LONG, query=(name,))
    assert f"no column {name!r} (asked for by query).{hint and ' ' + hint} Its" in str(error.value)
    assert "'query', 'doc', 'rank', 'click'" in str(error.value)


def test_many_columns_are_not_all_listed():
    many = {f"c{i}": Column((f"c{i}",), "int") for i in range(30)}
    for given in ({"doc": "x"}, {}):
        with pytest.raises(MissingColumns, match=r"'c19' and 10 more\."):
            assign(many, given, "auto")


@pytest.mark.parametrize(
    ("layout", "given", "fact"),
    [
        ("long", {"shown": "results"}, "shown goes with a log of layout list, not long"),
        ("events", {"clicked": "clicked"}, "clicked goes with a log of layout list"),
        ("list", {"event": "query"}, "event goes with a log of layout events, not list"),
    ],
)
def test_a_role_of_another_layout_is_refused(layout, given, fact):
    with pytest.raises(BadOption, match=fact):
        assign(LONG | LIST, given, layout)


def test_needed_roles_are_fields_of_roles():
    names = set(vars(Roles(query=("q",))))
    for layout in LAYOUTS:
        assert {*layout.needed, *layout.optional} <= names & set(SYNONYMS)


# -- columns for checks ----------------------------------------------------------------------------

EXTRAS = columns(
    score="float", ranker_version="text", user_id="int", purchase="bool", dwell_time="float"
)  # fmt: skip


def extras(found, at_least=False, wanted=None, **given):
    found = assign(found, given, wanted, at_least)[1]
    return found.score, found.ranker, found.user, found.outcome


def test_columns_for_checks_are_guessed():
    assert extras(LONG) == (None,) * 4
    assert extras(LONG | EXTRAS) == ("score", "ranker_version", "user_id", "purchase")
    _, _, guessed = assign(LONG | EXTRAS, {})
    assert list(guessed)[-4:] == ["score", "ranker", "user", "outcome"]
    assert extras(LONG | EXTRAS, score="", user="") == (None, "ranker_version", None, "purchase")


def test_a_dwell_is_an_outcome_only_from_a_number_on():
    dwell = LONG | columns(dwell_time="float")
    assert extras(dwell)[3] is None
    assert extras(dwell, at_least=True)[3] == "dwell_time"
    assert extras(LONG | EXTRAS, at_least=True)[3] == "dwell_time"
    assert extras(LONG | columns(purchase="bool"), at_least=True)[3] is None


@pytest.mark.parametrize(
    ("role", "name", "kind"),
    [
        ("score", "score", "text"),
        ("score", "score", "nested"),
        ("score", "score", "list"),
        ("ranker", "variant", "list"),
        ("user", "user", "nested"),
        ("outcome", "conversion", "nested"),
    ],
)
def test_what_does_not_fit_is_not_guessed(role, name, kind):
    assert getattr(roles(LONG | columns(**{name: kind})), role) is None


def test_columns_for_checks_take_none_from_other_roles():
    found = roles(columns(query="text", user="text", rank="int", click="int"), doc="user")
    assert (found.doc, found.user) == ("user", None)
    # What makes segments may be the ranker as well.
    assert roles(LONG | EXTRAS, segment="ranker_version").ranker == "ranker_version"


def test_a_row_per_search_has_lists_for_checks():
    lists = columns(score="list", purchased="list", user="text")
    assert extras(LIST | lists) == ("score", None, "user", "purchased")
    assert extras(LIST | columns(score="float", purchased="int")) == (None,) * 4


@pytest.mark.parametrize(
    ("found", "given", "words"),
    [
        (LONG | columns(made="date"), {"score": "made"}, "of kind date, not a number"),
        (LONG | columns(parts="list"), {"outcome": "parts"}, "not a flag, a number or a time"),
        (LONG | columns(who="nested"), {"user": "who"}, "not one value. Name another"),
        (LIST | columns(made="float"), {"score": "made"}, "a list with a number for each doc"),
        (LIST | columns(made="int"), {"outcome": "made"}, "not a list of docs"),
    ],
)
def test_a_column_that_cannot_be_what_it_was_named_for(found, given, words):
    with pytest.raises(BadOption, match=words):
        roles(found, **given)


def test_a_number_is_asked_of_an_outcome_from_a_number_on():
    with pytest.raises(BadOption, match="not a number, which outcome_at_least asks for"):
        extras(LONG | columns(paid="bool"), at_least=True, outcome="paid")
    with pytest.raises(BadOption, match="the outcome is a list of docs"):
        extras(LIST | columns(paid="list"), at_least=True, outcome="paid")


@pytest.mark.parametrize("name", ["random", "randomised", "randomized", "is_random"])
def test_a_randomised_slice_is_found(name):
    assert roles(LONG | columns(**{name: "bool"})).randomised == name
    assert roles(LONG | columns(**{name: "float"})).randomised is None  # a number drawn, perhaps
