"""A run for MLflow: its numbers as metrics, its settings as parameters, and its curve, record and
page as artefacts. Where MLflow keeps them is its own affair: MLFLOW_TRACKING_URI says so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rankdrift.core.artefacts import DRIFT_FILE, RUN_RECORD
from rankdrift.core.errors import MissingExtra
from rankdrift.monitoring.record import began
from rankdrift.monitoring.steps import CURVE, DIAGNOSIS, PAGE

TAG = "rankdrift.run"
ARTEFACTS = (CURVE, DIAGNOSIS, DRIFT_FILE, PAGE, RUN_RECORD)
_LONGEST = 6000  # characters that MLflow takes for a parameter


def need_mlflow() -> Any:
    """The package, or MissingExtra."""
    try:
        import mlflow
    except ImportError as error:
        raise MissingExtra(
            "Logging a run to MLflow needs the package mlflow: pip install 'rankdrift[mlflow]'. Or "
            "leave out --mlflow."
        ) from error
    return mlflow


def log_run(experiment: str, folder: Path) -> tuple[bool, str]:
    """Log the results in a folder, once: whether that was now, and words on it.

    Parameters
    ----------
    experiment
        The name of MLflow's experiment; it is made if it is not there.
    folder
        Results of a run, with its record.
    """
    client = need_mlflow().MlflowClient()
    found = client.get_experiment_by_name(experiment)
    at = found.experiment_id if found else client.create_experiment(experiment)
    name = folder.name
    done = client.search_runs([at], f"tags.`{TAG}` = '{name}' and attributes.status = 'FINISHED'")
    if done:
        return False, f"{name} is in {experiment} already"
    plain = json.loads((folder / RUN_RECORD).read_text("utf-8"))
    tags = {TAG: name, "rankdrift.outcome": plain["outcome"], "rankdrift.key": plain["key"]}
    start = int(began(name).timestamp() * 1000)
    run = client.create_run(at, start_time=start, tags=tags, run_name=name).info.run_id
    for metric, value, rank in _metrics(plain):
        client.log_metric(run, metric, value, step=rank)
    for parameter, text in _flat(plain["settings"]):
        client.log_param(run, parameter, text[:_LONGEST])
    for file in ARTEFACTS:
        if (folder / file).exists():
            client.log_artifact(run, str(folder / file))
    client.set_terminated(run)
    return True, f"{name} is in {experiment}"


def _metrics(plain: Mapping[str, Any]) -> Iterator[tuple[str, float, int]]:
    """(name, value, step); of a curve the step is the rank."""
    for name in ("exit_code", "seconds", "rows", "pairs", "clicks"):
        yield name, float(plain[name]), 0
    for step in plain["steps"]:
        for at in step["numbers"].get("curve", ()) if step["name"] == "estimate" else ():
            for name in ("propensity", "low", "high"):
                if at[name] is not None:
                    yield name, at[name], at["rank"]


def _flat(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        elif value is not None:
            yield f"{above}{name}", str(value)
