"""Propensities, every night. Exit code 1 (the data will not do, or the curve drifts) and 2 (the
request would not) both fail the task; `runs/last-run.json` tells which, and why."""

import os
from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

with DAG(
    dag_id="rankdrift_every_night",
    schedule="30 3 * * *",
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,  # one run counts every day that is new
    max_active_runs=1,
) as dag:
    BashOperator(
        task_id="run",
        bash_command="rankdrift run --log-format json",
        cwd=os.environ.get("SEARCH", "/srv/search"),  # where rankdrift.toml is
        append_env=True,
        retries=2,  # what was done before a kill is not done again
        retry_delay=timedelta(minutes=10),
    )
