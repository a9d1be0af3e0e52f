from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from support.worlds import simulate

from rankdrift.cli import rankdrift
from rankdrift.core.errors import BadOption
from rankdrift.estimation import estimate
from rankdrift.estimation.curves import (
    PAPER_KNOTS,
    PARTS,
    Curve,
    Part,
    PartKind,
    curve,
    hats,
    one_number,
)

ROUNDING = 1e-12


def upto(last, first=1):
    return np.arange(first, last + 1, dtype=np.int32)


def spans_constant(basis):
    ones = np.ones(len(basis))
    found = np.linalg.lstsq(basis, ones, rcond=None)[0]
    return np.allclose(basis @ found, ones, atol=1e-9)


# What a text means


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("direct", [("direct", ())]),
        ("loglog", [("loglog", ())]),
        ("loglog()", [("loglog", ())]),
        (" LogLog ( 1,2 , 10 ) ", [("loglog", (1, 2, 10))]),
        ("loglog(knots=1, 2, 10)", [("loglog", (1, 2, 10))]),
        ("loglog + periodic(40)", [("loglog", ()), ("periodic", (40,))]),
        ("loglog(1,5,9)+periodic(n=4)", [("loglog", (1, 5, 9)), ("periodic", (4,))]),
        ("loglog + batch(40)", [("loglog", ()), ("batch", (40,))]),
        ("loglog(1,9)+batch(40, 25,26)", [("loglog", (1, 9)), ("batch", (40, 25, 26))]),
        ("grid(4)", [("grid", (4,))]),
        ("auto", [("auto", ())]),
    ],
)
def test_texts(text, parts):
    found = curve(text)
    assert [(p.name, p.numbers) for p in found.parts] == parts
    assert curve(str(found)) == found
    assert curve(found) is found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("logloh", "No curve 'logloh'. Did you mean 'loglog'?"),
        ("", "No curve ''"),
        ("loglog(1, 2", "No curve 'loglog(1, 2'. Did you mean 'loglog'?"),
        ("loglog(1.5, 2)", "No curve 'loglog(1.5, 2)'"),
        ("loglog(-1, 2)", "No curve 'loglog(-1, 2)'"),
        ("loglog(one, two)", "must be whole"),
        ("loglog(1 2 5)", "must be whole"),
        ("loglog(5)", "two or more ranks in ascending order, not (5,)"),
        ("loglog(5, 2)", "ascending order, not (5, 2)"),
        ("loglog(2, 2, 5)", "ascending order"),
        ("loglog(0, 5)", "ascending order"),
        ("periodic(40)", "write 'loglog + periodic(N)'"),
        ("loglog + periodic", "periodic takes one number of 2 or more"),
        ("loglog + periodic(1)", "periodic takes one number of 2 or more"),
        ("loglog + periodic(2, 3)", "periodic takes one number"),
        ("batch(40)", "batch(N) goes with loglog: write 'loglog + batch(N)'"),
        ("loglog + batch", "batch takes how many results a batch has, 2 or more, as in batch(40)"),
        ("loglog + batch(1)", "batch takes how many results"),
        ("loglog + batch(40, 30, 25)", "in ascending order, as in batch(40, 25)"),
        ("loglog + batch(40, 41)", "the places in it where the curve bends"),
        ("loglog + batch(40, 0, 9)", "the places in it where the curve bends"),
        ("loglog + batch(40) + batch(20)", "What goes together"),
        ("grid", "grid takes one number of 2 or more"),
        ("grid(1)", "grid takes one number of 2 or more"),
        ("direct(3)", "direct takes no numbers"),
        ("auto(3)", "auto takes no numbers"),
        (
            "periodic(4) + loglog",
            "What goes together is loglog + batch(N) or loglog + batch(N, PLACES) or loglog + "
            "periodic(N).",
        ),
        ("direct + periodic(4)", "What goes together"),
        ("auto + periodic(4)", "What goes together"),
        ("loglog + loglog", "What goes together"),
        ("loglog + periodic(4) + periodic(5)", "What goes together"),
        ("loglog +", "No curve ''"),
    ],
)
def test_texts_that_mean_no_curve(text, words):
    with pytest.raises(BadOption) as error:
        curve(text)
    assert words in str(error.value)


def test_what_kind_it_is():
    assert curve("direct").is_direct
    assert not curve("loglog").is_direct
    assert curve("auto").is_auto
    assert not curve("direct").is_auto


# Bases


def test_direct_is_one_parameter_a_rank():
    assert (curve("direct").basis(upto(5)) == np.eye(5)).all()


def test_loglog_by_hand():
    """Knots 1, 4, 16: rank 2 is half way from 1 to 4 in the log, rank 8 from 4 to 16."""
    basis = curve("loglog(1, 4, 16)").basis(upto(16))
    third = np.log(3) / np.log(4)
    tenth = np.log(10 / 4) / np.log(4)
    for rank, row in {
        1: [1, 0, 0],
        2: [1 / 2, 1 / 2, 0],
        3: [1 - third, third, 0],
        4: [0, 1, 0],
        8: [0, 1 / 2, 1 / 2],
        10: [0, 1 - tenth, tenth],
        16: [0, 0, 1],
    }.items():
        np.testing.assert_allclose(basis[rank - 1], row, atol=ROUNDING, err_msg=f"rank {rank}")


def test_loglog_follows_any_power_of_the_rank_exactly():
    ranks = upto(500)
    basis = curve("loglog").basis(ranks)
    knots = np.array(PAPER_KNOTS)
    assert basis.shape == (500, len(knots))
    np.testing.assert_allclose(basis @ (-0.7 * np.log(knots)), -0.7 * np.log(ranks), atol=1e-9)
    np.testing.assert_allclose(basis.sum(axis=1), 1, atol=ROUNDING)
    assert (basis >= 0).all()
    assert ((basis > 0).sum(axis=1) <= 2).all()


def test_knots_lie_within_the_ranks_and_at_both_ends():
    assert str(curve("loglog").at(upto(60, 3))) == "loglog(3, 4, 8, 20, 50, 60)"
    assert str(curve("loglog(1, 10, 900)").at(upto(60))) == "loglog(1, 10, 60)"
    assert str(curve("loglog + periodic(4)").at(upto(9))) == "loglog(1, 2, 4, 8, 9) + periodic(4)"
    fixed = curve("loglog").at(upto(60))
    assert fixed.at(upto(60)) == fixed
    assert curve("loglog").basis(upto(2)).tolist() == [[1, 0], [0, 1]]


def test_hats_stay_level_outside_the_knots():
    found = hats(np.array([0.0, 1.0, 1.5, 3.0, 9.0]), np.array([1.0, 2.0, 4.0]))
    wanted = [[1, 0, 0], [1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]]
    np.testing.assert_allclose(found, wanted, atol=ROUNDING)


def test_periodic_by_hand():
    """The first place of a batch has no parameter: the log-log part has its level."""
    basis = curve("loglog(1, 9) + periodic(3)").basis(upto(9))
    assert basis.shape == (9, 2 + 2)
    assert basis[:, 2].tolist() == [0, 1, 0, 0, 1, 0, 0, 1, 0]
    assert basis[:, 3].tolist() == [0, 0, 1, 0, 0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("batch(40)", [1, 11, 21, 30, 40]),  # from 1 to 40 in four steps of 9.75
        ("batch(7)", [1, 3, 4, 6, 7]),
        ("batch(3)", [1, 2, 3]),  # as many knots as places
        ("batch(40, 25)", [1, 25, 40]),
        ("batch(40, 1, 25, 40)", [1, 25, 40]),
        ("batch(40, 40)", [1, 40]),  # no bend
    ],
)
@pytest.mark.parametrize("first", [1, 6])
def test_batch_is_an_interpolation_between_places(text, places, first):
    """Of any levels at its knots, 0 at the first; ranks count on from batch to batch."""
    size, ranks = places[-1], upto(170, first)
    levels = np.random.default_rng(size).normal(size=len(places))
    levels[0] = 0
    found = curve(f"loglog(1, 200) + {text}").basis(ranks)[:, 2:] @ levels[1:]
    for rank, value in zip(ranks.tolist(), found.tolist(), strict=True):
        place = rank
        while place > size:
            place -= size
        above = max(k for k in places if k <= place)
        below = min(k for k in places if k >= place)
        share = (place - above) / (below - above) if below > above else 0.0
        by_hand = dict(zip(places, levels.tolist(), strict=True))
        wanted = by_hand[above] * (1 - share) + by_hand[below] * share
        assert value == pytest.approx(wanted, abs=ROUNDING), rank


@pytest.mark.parametrize("text", ["batch(20)", "batch(20, 13, 14)", "batch(4)"])
def test_a_batch_is_a_period_with_fewer_parameters(text):
    """Whatever batch(N) can follow, periodic(N) can."""
    ranks = upto(90)
    batch = curve(f"loglog + {text}").basis(ranks)
    period = curve(f"loglog + periodic({text[6:].split(',')[0].rstrip(')')})").basis(ranks)
    assert np.linalg.matrix_rank(np.concatenate([period, batch], axis=1)) == period.shape[1]
    assert batch.shape[1] <= period.shape[1]


def test_grid_by_hand():
    """Four columns: ranks 1 to 4 are the first row; the row part is log-log in the row."""
    basis = curve("grid(4)").basis(upto(12))
    rows = np.array([1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3])
    assert basis.shape == (12, 3 + 3)
    np.testing.assert_allclose(basis[:, :3], np.eye(3)[rows - 1], atol=ROUNDING)
    np.testing.assert_allclose(basis[:, 3:], np.tile(np.eye(4)[:, 1:], (3, 1)), atol=ROUNDING)


@pytest.mark.parametrize("last", [12, 37, 120, 500])
@pytest.mark.parametrize("first", [1, 2, 7])
@pytest.mark.parametrize(
    "text",
    [
        "loglog",
        "loglog(1, 10) + periodic(2)",
        "loglog + periodic(5)",
        "loglog + batch(6)",
        "loglog + batch(12, 9)",
        "grid(2)",
        "grid(4)",
    ],
)
def test_columns_are_independent_and_span_the_constant(text, first, last):
    ranks = upto(last, first)
    try:
        basis = curve(text).basis(ranks)
    except BadOption as error:
        assert "more freedom than" in str(error)
        assert last == 12  # only few ranks can be too few
        return
    assert np.linalg.matrix_rank(basis) == basis.shape[1]
    assert spans_constant(basis)
    assert np.isfinite(basis).all()


def test_a_period_of_forty_over_five_hundred_ranks():
    basis = curve("loglog + periodic(40)").basis(upto(500))
    assert basis.shape == (500, 10 + 39)
    assert np.linalg.matrix_rank(basis) == 49


def test_more_freedom_than_ranks():
    with pytest.raises(BadOption, match=r"more freedom than 30 ranks \(1 to 30\) can tell apart"):
        curve("loglog + periodic(40)").basis(upto(30))
    with pytest.raises(BadOption, match=r"more freedom than 25 ranks \(1 to 25\) can tell apart"):
        curve("loglog + batch(40)").basis(upto(25))  # no rank between places 30 and 40
    with pytest.raises(BadOption, match=r"grid\(10\) needs at least two rows"):
        curve("grid(10)").basis(upto(10))


def test_a_curve_made_of_parts_reads_as_its_text():
    made = Curve((Part("loglog", (1, 2, 5)), Part("periodic", (40,))))
    assert str(made) == "loglog(1, 2, 5) + periodic(40)"
    assert curve(str(made)) == made


@pytest.mark.parametrize(
    "text",
    ["loglog(1, 8, 40)", "loglog + periodic(8)", "loglog + batch(8)", "loglog + batch(8, 6)"],
)
def test_a_curve_goes_on_beyond_its_ranks_as_it_was(text):
    """The last stretch as it is, and batch after batch."""
    settled = curve(text).at(upto(40))
    phi = np.random.default_rng(1).normal(size=settled.basis(upto(40)).shape[1])
    inside, beyond = settled.basis(upto(40)) @ phi, settled.beyond(upto(72, 41)) @ phi
    main = settled.parts[0].numbers
    level = np.interp(np.log(upto(40)), np.log(main), phi[: len(main)])
    slope = (level[-1] - phi[len(main) - 2]) / np.log(main[-1] / main[-2])
    detail = inside - level
    np.testing.assert_allclose(
        beyond,
        level[-1] + slope * np.log(upto(72, 41) / 40) + np.tile(detail[32:], 4),
        atol=1e-9,  # logarithms and their differences
    )


# A curve is an extension point


def _steps(ranks, numbers):
    """Two levels: up to a rank, and below it."""
    below = (ranks > numbers[0]).astype(float)
    return np.stack([1 - below, below], axis=1)


STEP = PartKind(
    "step",
    use="a fold in the page, and nothing else",
    forms=("step(RANK)",),
    examples=("'step(3)'",),
    basis=_steps,
    check=one_number,
    beyond=lambda deeper, numbers: _steps(deeper, numbers),
)


def _help():
    return CliRunner().invoke(rankdrift, ["estimate", "--help"]).output


def test_a_new_part_is_one_object():
    counts = simulate(500, 6, 3).counts
    with PARTS.registered(STEP):
        assert str(curve(" Step( 3 )")) == "step(3)"
        found = estimate(counts, curve="step(3)", extrapolate_to=8)
        assert found.method == "step(3), every"
        assert found.parameters == 1
        assert len(set(found.log_p[:3])) == len(set(found.log_p[3:])) == 1
        assert found.values[0] == 1 and 0 < found.values[-1] < 1
        assert found.ranks[-1] == 8 and not found.supported[-1]
        with pytest.raises(BadOption, match=r"one number of 2 or more, as in step\(40\)"):
            curve("step")
        with pytest.raises(BadOption, match=r"'step'\? There are .* and step\(RANK\)\."):
            curve("stop")
        with pytest.raises(BadOption, match="Only a loglog or step curve can be drawn on"):
            estimate(counts, curve="direct", extrapolate_to=9)
        for wrong in (0, 10**8):  # of which the errors alone would fill the memory
            with pytest.raises(BadOption, match="extrapolate_to is a rank, from 1 to 10,000"):
                estimate(counts, curve="step(3)", extrapolate_to=wrong)
        assert "'step(3)'" in _help()
    assert "'step(3)'" not in _help()
    with pytest.raises(BadOption, match="No curve 'step"):
        curve("step(3)")


def test_a_new_part_may_be_added_to_another():
    tilt = PartKind(
        "tilt",
        use="a test",
        forms=("loglog + tilt",),
        examples=("'loglog + tilt'",),
        basis=lambda ranks, _: (ranks[:, None] % 7 == 0).astype(float),
        added_to="loglog",
    )
    with PARTS.registered(tilt):
        assert curve("loglog(1, 9) + tilt").basis(upto(9)).shape == (9, 3)
        with pytest.raises(BadOption, match=r"loglog \+ periodic\(N\) or loglog \+ tilt"):
            curve("direct + tilt")
        with pytest.raises(BadOption, match=r"tilt goes with loglog: write 'loglog \+ tilt'"):
            curve("tilt")


def test_every_part_is_in_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "choosing-a-curve.md").read_text()
    table = [line.split("|")[1] for line in page.splitlines() if line.startswith("|")]
    for kind in PARTS:
        assert kind.use
        assert any(kind.name in cell for cell in table), kind.name
