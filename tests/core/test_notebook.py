"""Tables for notebooks are escaped: names come from strangers."""

from rankdrift.core.notebook import html_table


def test_everything_is_escaped_and_numbers_are_grouped():
    found = html_table(["<b>", "n"], [("<script>", 1234567), (None, "a&b")], note="1 < 2")
    assert found == (
        '<p>1 &lt; 2</p><table style="border-collapse: separate; border-spacing: 0.8em 0">'
        "<thead><tr><th>&lt;b&gt;</th><th>n</th></tr></thead><tbody>"
        "<tr><td>&lt;script&gt;</td><td>1,234,567</td></tr>"
        "<tr><td></td><td>a&amp;b</td></tr></tbody></table>"
    )


def test_no_note_no_paragraph():
    assert "<p>" not in html_table(["a"], [])
