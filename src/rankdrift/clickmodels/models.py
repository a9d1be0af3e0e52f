"""All click models, from the simplest on, in the order of tables."""

from rankdrift.clickmodels.cascade import Cascade
from rankdrift.clickmodels.click_chain import ClickChain
from rankdrift.clickmodels.dependent_click import DependentClick
from rankdrift.clickmodels.doc_rank_rate import DocRankRate
from rankdrift.clickmodels.doc_rate import DocRate
from rankdrift.clickmodels.dynamic_bayesian import DynamicBayesian
from rankdrift.clickmodels.global_rate import RandomClicks
from rankdrift.clickmodels.model import ClickModel
from rankdrift.clickmodels.position_based import PositionBased
from rankdrift.clickmodels.rank_rate import RankRate
from rankdrift.clickmodels.simplified_dbn import SimplifiedDbn
from rankdrift.clickmodels.user_browsing import UserBrowsing
from rankdrift.core.registry import Registry

MODELS = Registry[type[ClickModel]]("click model")
for _model in (
    RandomClicks,
    RankRate,
    DocRate,
    DocRankRate,
    PositionBased,
    Cascade,
    DependentClick,
    ClickChain,
    UserBrowsing,
    SimplifiedDbn,
    DynamicBayesian,
):
    MODELS.register(_model)


def browsing_models() -> list[str]:
    """Names of those in which clicks above change what is looked at: all that can speak against
    the position-based model. Plain rates say nothing of looks, however well they forecast."""
    kept = ClickModel.click_probabilities
    return [model.name for model in MODELS if model.click_probabilities is not kept]


def judging_models() -> list[str]:
    """Names of those that tell what users look at from what they want, and so judge docs."""
    return [model.name for model in MODELS if model.looked_at is not ClickModel.looked_at]
