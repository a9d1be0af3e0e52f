"""A registry keeps order, complains with the nearest name, and gives back what it took."""

from dataclasses import dataclass

import pytest

from rankdrift.core.errors import BadOption
from rankdrift.core.registry import Registry


@dataclass(frozen=True)
class Fruit:
    name: str


@pytest.fixture
def fruits() -> Registry[Fruit]:
    found: Registry[Fruit] = Registry("fruit")
    for name in ("pear", "apple", "quince"):
        found.register(Fruit(name))
    return found


def test_names_and_items_come_in_the_order_of_registration(fruits):
    assert fruits.names == ("pear", "apple", "quince")
    assert [fruit.name for fruit in fruits] == ["pear", "apple", "quince"]
    assert len(fruits) == 3
    assert "apple" in fruits and "plum" not in fruits
    assert fruits.get("apple") == Fruit("apple")


def test_an_unknown_name_gets_the_nearest_and_all_there_are(fruits):
    with pytest.raises(BadOption) as raised:
        fruits.get("aple")
    assert str(raised.value) == (
        "No fruit 'aple'. Did you mean 'apple'? There are pear, apple, quince."
    )


def test_a_name_is_given_once(fruits):
    with pytest.raises(ValueError, match="There is a fruit 'pear' already"):
        fruits.register(Fruit("pear"))


def test_one_can_be_taken_out_again(fruits):
    assert fruits.remove("apple") == Fruit("apple")
    assert fruits.names == ("pear", "quince")
    with pytest.raises(BadOption):
        fruits.remove("apple")


def test_one_can_be_there_for_a_while_even_if_the_block_fails(fruits):
    with pytest.raises(RuntimeError), fruits.registered(Fruit("plum")) as plum:
        assert fruits.get("plum") is plum
        raise RuntimeError
    assert "plum" not in fruits


def test_it_decorates_functions_and_classes():
    anything: Registry[object] = Registry("thing")

    @anything.register
    def walk() -> int:
        return 7

    @anything.register
    class Named:
        name = "run"

    assert anything.names == ("walk", "run")
    assert walk() == 7
    assert anything.get("run") is Named
    with pytest.raises(TypeError, match="has no name"):
        anything.register(3)
