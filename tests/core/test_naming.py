"""A wrong name of an argument is answered with the right one."""

import inspect

import pytest

import rankdrift
from rankdrift.core.errors import RankdriftError

FUNCTIONS = [
    name
    for name in rankdrift.__all__
    if inspect.isfunction(getattr(rankdrift, name))
    and name != "warehouse_sql"  # takes the options of a log besides, and looks at them itself
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_tells_the_right_name(name):
    function = getattr(rankdrift, name)
    known = list(inspect.signature(function).parameters)
    wrong = known[-1] + "x" if len(known[-1]) < 6 else known[-1][:-1]
    with pytest.raises(TypeError, match=f"Did you mean '{known[-1]}'") as caught:
        function(None, **{wrong: 1})
    assert isinstance(caught.value, RankdriftError)
    assert str(caught.value).startswith(f"{name}() takes no '{wrong}'")


def test_a_name_like_none_of_them_gets_the_list():
    with pytest.raises(RankdriftError, match="It takes counts, curve, reference"):
        rankdrift.diagnose(None, zzz=1)


def test_what_help_and_editors_show_is_the_function_itself():
    assert str(inspect.signature(rankdrift.diagnose)).endswith(
        "reference: int | None = None) -> rankdrift.diagnosis.diagnosing.Diagnosis"
    )
    assert rankdrift.estimate.__doc__.startswith("Estimate how likely")
