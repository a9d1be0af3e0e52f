"""The picture of the packages is what they import."""

import draw_packages


def test_the_picture_is_drawn_from_the_imports():
    assert draw_packages.PICTURE.read_text(encoding="utf-8") == draw_packages.draw(), (
        "the packages import one another differently than the picture says: make picture"
    )


def test_what_others_imply_is_left_out():
    edges = {("a", "b"), ("b", "c"), ("a", "c"), ("a", "d")}
    assert draw_packages.without_implied(edges) == [("a", "b"), ("a", "d"), ("b", "c")]


def test_every_package_has_its_words():
    drawn = {name for layer in draw_packages.layers() for name in layer}
    assert drawn == set(draw_packages.WORDS)
