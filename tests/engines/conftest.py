import os

import pytest
from support.harness import Harness

# What these ask of Spark other tests ask of it as well.
ASKED_ELSEWHERE = {
    "test_a_blank_of_any_script_is_blank_in_every_format",
    "test_a_click_after_midnight_belongs_to_what_was_shown_before",
    "test_a_column_misspelt",
    "test_a_condition_that_nothing_meets",
    "test_a_csv_id_keeps_its_zeros",
    "test_a_day_of_clicks_alone_is_an_empty_file_with_its_funnel",
    "test_a_day_of_searches_that_found_nothing_is_an_empty_file",
    "test_a_doc_twice_in_one_search",
    "test_a_file_that_lacks_a_column",
    "test_a_list_that_must_be_equal_goes_along_with_the_docs",
    "test_a_query_of_several_columns",
    "test_a_row_per_event",
    "test_a_row_per_search",
    "test_a_row_twice_of_a_pair_that_stayed",
    "test_all_clicks_zero_is_counted_as_such",
    "test_all_columns",
    "test_all_pairs_are_compared",
    "test_an_empty_folder",
    "test_an_id_that_is_not_a_number_is_missing",
    "test_blank_is_missing_but_blanks_around_matter",
    "test_clicks_of_any_type",
    "test_columns_that_cannot_be_guessed",
    "test_columns_that_must_be_equal",
    "test_copies_of_rows_that_cannot_be_read",
    "test_copies_that_differ_in_more_than_the_click",
    "test_days_in_any_form",
    "test_days_of_lists",
    "test_days_of_one_file_of_text",
    "test_days_of_searches_with_repeats",
    "test_days_that_did_not_change_are_left_alone",
    "test_docs_with_blanks_and_commas_in_json_text",
    "test_events_of_other_names",
    "test_fewer_buckets_are_the_larger_number_folded",
    "test_files_whose_columns_differ_in_order_and_number",
    "test_files_whose_types_grow",
    "test_ids_of_any_type",
    "test_lists_as_text",
    "test_no_pair_at_two_ranks",
    "test_no_rows",
    "test_one_day_only",
    "test_pages_of_lists",
    "test_ranks_deeper_than_max_rank_are_dropped",
    "test_ranks_of_any_type",
    "test_ranks_that_count_from_zero",
    "test_ranks_that_start_again_on_every_page",
    "test_ranks_that_start_at_zero",
    "test_rows_without_a_search_are_never_copies",
    "test_scores_of_much_shown_pairs_are_thinned",
    "test_segments",
    "test_segments_that_text_files_confuse",
    "test_they_are_those_of_plain_python",
    "test_what_files_say_comes_before_the_names_of_folders",
    "test_where",
    "test_which_way_pairs_moved",
    "test_without_a_day_the_whole_log_is_one",
}


def pytest_collection_modifyitems(config, items):
    """Spark takes seconds where DuckDB takes milliseconds: of a test's many cases it runs the
    first, of some tests none, and all of them with RANKDRIFT_ALL_CASES=1."""
    if os.environ.get("RANKDRIFT_ALL_CASES"):
        return
    seen, kept, left = {(None, name) for name in ASKED_ELSEWHERE}, [], []
    for item in items:
        callspec = getattr(item, "callspec", None)
        case = callspec and callspec.params.get("engine") == "spark" and item.originalname
        again = case and bool({(item.path, case), (None, case)} & seen)
        (left if again else kept).append(item)
        if case:
            seen.add((item.path, case))
    items[:] = kept
    config.hook.pytest_deselected(items=left)


@pytest.fixture(
    params=[
        "duckdb",
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")]),
    ]
)
def engine(request):
    """Every engine in turn: one suite, identical counts."""
    if request.param == "duckdb":
        return Harness("duckdb")
    spark = pytest.importorskip("support.spark_session", reason="needs the extra `spark`")
    return Harness("spark", spark.session())


@pytest.fixture
def duckdb_engine():
    return Harness("duckdb")
