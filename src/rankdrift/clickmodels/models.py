"""All click models, from the simplest on: importing this registers them."""

from rankdrift.clickmodels import (  # noqa: F401, I001  in the order of tables
    global_rate,
    rank_rate,
    doc_rate,
    doc_rank_rate,
    position_based,
    cascade,
    dependent_click,
    click_chain,
    user_browsing,
    simplified_dbn,
    dynamic_bayesian,
)
from rankdrift.clickmodels.model import MODELS, ClickModel

__all__ = ["MODELS", "ClickModel"]
