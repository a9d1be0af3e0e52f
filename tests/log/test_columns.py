import pytest

from rankdrift.log.columns import SYNONYMS, Column, Roles, guess, plain


@pytest.mark.parametrize("name", ["Item ID", "item_id", "itemId", "ITEM-ID", "item.id"])
def test_names_are_compared_without_case_and_punctuation(name):
    found = {"x": Column(("x",), "text"), name: Column((name,), "text")}
    assert (guess("doc", found.values()) == name) == ("." not in name)
    assert plain("Item ID") == plain("item_id") == plain("itemId")


@pytest.mark.parametrize("role", SYNONYMS)
def test_every_synonym_is_guessed(role):
    kind = "list" if role in ("shown", "clicked") else "text"
    for word in SYNONYMS[role]:
        assert guess(role, [Column(tuple(word.split(".")), kind)]) == word
    words = [plain(word) for word in SYNONYMS[role]]
    known_twice = {"docid", "itemid"}
    assert {word for word in words if words.count(word) > 1} <= known_twice


def test_the_better_word_wins_whatever_the_order():
    some = [Column(("position",), "int"), Column(("rank",), "int"), Column(("pos",), "int")]
    assert guess("rank", some) == guess("rank", some[::-1]) == "rank"
    assert guess("rank", some, taken=["rank"]) == "position"


def test_of_two_columns_of_one_plain_name_the_first_is_taken():
    assert guess("doc", [Column(("item_id",), "text"), Column(("itemId",), "text")]) == "item_id"


@pytest.mark.parametrize(
    ("role", "name"),
    [
        *(("query", "Suchbegriff"), ("doc", "Artikelnummer"), ("rank", "Rang"), ("click", "Klick")),
        *(("day", "Datum"), ("search", "Sitzung"), ("page", "Seite"), ("page", "Seitennummer")),
        *(("user", "Kunde"), ("outcome", "Bestellt")),
    ],
)
def test_a_german_header_plays_one_part(role, name):
    column = [Column((name,), "text")]
    assert [each for each in SYNONYMS if guess(each, column)] == [role]


def test_a_column_of_the_wrong_kind_is_not_guessed():
    assert guess("click", [Column(("clicked",), "list"), Column(("clicks",), "int")]) == "clicks"
    assert guess("shown", [Column(("results",), "int")]) is None
    assert guess("shown", [Column(("results",), "text")]) is None
    assert guess("doc", [Column(("doc",), "nested")]) is None


def test_roles_as_plain_values():
    found = Roles(query=("a", "b"), doc="d", same=("p",))
    assert found.to_dict() == {"query": ["a", "b"], "doc": "d", "same": ["p"]}
