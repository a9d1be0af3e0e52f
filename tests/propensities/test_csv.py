"""CSV holds the table, and gives back each rank with its own error."""

import csv
import re
from collections import Counter

import numpy as np
import pytest
from support.curve_example import DEVICES, by_device, hand

from rankdrift.core.errors import BadOption, BadPropensities
from rankdrift.propensities.propensities import Propensities

T_95_7 = 2.364624251592785  # scipy.special.stdtrit(7, 0.975)
# log(exp(x)) and a number written in decimal differ from x by rounding only.
ROUNDING = 1e-14
SIX_DIGITS = 1e-5  # of intervals and errors, twice rounded


# CSV holds the table


@pytest.mark.parametrize(
    "name",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\uff1d1", "\\=1", "a=1", '=HYPERLINK("x","y")',
     "a;=1", 'a;" =1', "a;\\=1", "a\t@x", "a\n-1", ";", "\n"],
)  # fmt: skip
def test_no_segment_is_a_formula_and_all_read_back(name, tmp_path):
    """Spreadsheets work out what begins like a formula."""
    p = hand(segment_columns=("device",), by_segment={(name,): hand(), (f"{name}/{name}",): hand()})
    p.save(tmp_path / "p.csv")
    with (tmp_path / "p.csv").open(newline="") as file:
        cells = [row["segment"] for row in csv.DictReader(file)]
    parts = [part for cell in cells for part in re.split("[;\t\n]", cell)]
    assert not any(part.strip(" \"'").startswith(("=", "+", "-", "@", "\uff1d")) for part in parts)
    assert not any(cell.startswith(("\t", "\n")) for cell in cells)
    assert list(Propensities.load(tmp_path / "p.csv").by_segment) == [(name,), (f"{name}/{name}",)]


def test_csv_is_the_table(tmp_path):
    by_device().save(tmp_path / "p.csv", level=0.9)
    with (tmp_path / "p.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    table = by_device().table(0.9)
    assert rows[0] == list(table)
    assert [row[1] for row in rows[1:]] == [str(rank) for rank in table["rank"]]
    assert [float(row[3]) for row in rows[1:]] == pytest.approx(table["low"], rel=SIX_DIGITS)
    assert [row[8] for row in rows[1:5]] == ["true", "true", "true", "false"]


def test_a_segment_and_rank_is_one_row_unless_all_is_asked_for(tmp_path):
    """Whoever joins clicks to the file by segment and rank must not get them twice."""
    for full, times in ((False, 1), (True, 2)):
        by_device().save(tmp_path / "p.csv", full=full)
        with (tmp_path / "p.csv").open(newline="") as file:
            found = Counter((row["segment"], row["rank"]) for row in csv.DictReader(file))
        assert {many for (segment, _), many in found.items() if segment} == {times}
        assert {many for (segment, _), many in found.items() if not segment} == {1}


def test_csv_comes_back_with_each_ranks_own_error(tmp_path):
    by_device().save(tmp_path / "p.csv", full=True)
    back = Propensities.load(tmp_path / "p.csv")
    assert back.errors == "pointwise"
    for (_, ours), (_, theirs) in zip(
        (("", back), *back.by_segment.items(), *back.shrunk.items()),
        (("", hand()), *by_device().by_segment.items(), *by_device().shrunk.items()),
        strict=True,
    ):
        np.testing.assert_allclose(ours.log_p, theirs.log_p, atol=ROUNDING)
        np.testing.assert_allclose(ours.std_error, theirs.std_error, atol=ROUNDING)
        for name in ("ranks", "pairs", "clicks", "supported"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    assert back.segment_columns == ("segment",)
    assert list(back.by_segment) == list(DEVICES)


def test_pointwise_errors_give_no_ratio_that_needs_more(tmp_path):
    hand().save(tmp_path / "p.csv")
    p = Propensities.load(tmp_path / "p.csv")
    for refused in (lambda: p.ratio(2, 3), lambda: p.relative_to(2)):
        with pytest.raises(BadOption, match=r"\.json or \.parquet"):
            refused()
    assert p.ratio(5, 1).high == pytest.approx(0.1 * np.exp(T_95_7 * 0.5))
    assert p.ratio(1, 5).low == pytest.approx(10 * np.exp(-T_95_7 * 0.5))
    assert p.ratio(2, 2).value == 1
    assert p.relative_to(1).equals(p)
    # Taken as independent, the band can only be too wide.
    width = np.log(p.interval(simultaneous=True)[1][3] / 0.1) / 0.5
    assert width > np.log(hand().interval(simultaneous=True)[1][3] / 0.1) / 0.5


def test_a_pointwise_curve_stays_so_in_json(tmp_path):
    hand().save(tmp_path / "p.csv")
    p = Propensities.load(tmp_path / "p.csv")
    p.save(tmp_path / "p.json")
    back = Propensities.load(tmp_path / "p.json")
    assert back.errors == "pointwise"
    np.testing.assert_allclose(back.covariance, p.covariance, rtol=SIX_DIGITS, atol=ROUNDING)


def test_a_curve_from_elsewhere_needs_only_rank_and_propensity(tmp_path):
    (tmp_path / "p.csv").write_text("\ufeffpropensity,rank\n0.5,2\n1,1\n", encoding="utf-8")
    p = Propensities.load(tmp_path / "p.csv")
    assert p.ranks.tolist() == [1, 2]
    assert p.at(2) == 0.5
    assert (p.errors, p.reference) == ("none", 1)


def test_two_segment_columns_in_csv(tmp_path):
    text = "segment,rank,propensity\n,1,1\n,2,.5\nweb/us,1,1\nweb/us,2,.4\n"
    (tmp_path / "p.csv").write_text(text)
    p = Propensities.load(tmp_path / "p.csv")
    assert p.segment_columns == ("segment_1", "segment_2")
    assert p.segment("web", "us").at(2) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no column rank and no column propensity"),
        ("rank,propensty\n1,1\n", "no column propensity. Did you mean 'propensty'"),
        ("rank,propensity\n", "no row of the pooled curve"),
        ("rank,propensity\n1,1\none,0.5\n", "line 3: invalid literal"),
        ("rank,propensity\n1,1\n2\n", "line 3"),
        ("rank,propensity\n1,1\n2,0\n", "line 3: propensity must be above 0"),
        ("rank,propensity\n1,1\n2,nan\n", "line 3: propensity must be above 0"),
        ("rank,propensity\n1,1\n0,0.5\n", "line 3: 0 is no rank"),
        ("rank,propensity\n1,1\n2,.5\n2,.4\n", "ranks do not ascend"),
        ("rank,propensity\n1,0.9\n2,0.5\n", "no rank has propensity 1"),
        ("rank,propensity,std_error\n1,1,0\n2,0.5,\n", "1 of 2 rows has no std_error"),
        ("rank,propensity,std_error\n1,1,0\n2,0.5,-1\n", "std_error 0 or more"),
        ("rank,propensity,supported\n1,1,maybe\n", "supported is 'maybe'"),
        ("rank,propensity,pooling\n1,1,both\n", "pooling is 'both'"),
        ("rank,propensity,df\n1,1,0\n", "line 2: df is 0.0"),
        ("rank,propensity,df\n1,1,5\n2,.5,6\n", "df is 5 and 6 in rows of one curve"),
        ("rank,propensity,pairs\n1,1,-1\n", "pairs or clicks are negative"),
        ("segment,rank,propensity\n,1,1\na,1,1\na/b,1,1\n", "segments have 1 or 2 values"),
    ],
)
def test_bad_csv_is_refused_with_the_place(text, words, tmp_path):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(BadPropensities, match=r"p\.csv: ") as caught:
        Propensities.load(tmp_path / "p.csv")
    assert words in str(caught.value)


def test_csv_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "p.csv").write_bytes(b"rank,propensity\n\xff\xfe,1\n")
    with pytest.raises(BadPropensities, match="not CSV in UTF-8"):
        Propensities.load(tmp_path / "p.csv")
