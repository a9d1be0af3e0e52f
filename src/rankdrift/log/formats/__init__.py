"""The formats of logs that are known by themselves, a file each. To add one, make an object of a
class below `Format` and register it here: it is then recognised, read, listed and documented."""

from rankdrift.core.registry import Registry
from rankdrift.log.formats.algolia import ALGOLIA
from rankdrift.log.formats.baidu import BAIDU
from rankdrift.log.formats.clax import CLAX
from rankdrift.log.formats.elastic import ELASTIC
from rankdrift.log.formats.format import Format
from rankdrift.log.formats.ga4 import GA4
from rankdrift.log.formats.meilisearch import MEILISEARCH
from rankdrift.log.formats.metarank import METARANK
from rankdrift.log.formats.mind import MIND
from rankdrift.log.formats.open_bandit import OPEN_BANDIT
from rankdrift.log.formats.snowplow import SNOWPLOW
from rankdrift.log.formats.tiangong import TIANGONG
from rankdrift.log.formats.ubi import UBI
from rankdrift.log.formats.yandex import YANDEX

FORMATS = Registry[Format]("format")
"""The first that recognises a log reads it."""
for _format in (
    UBI, GA4, METARANK, SNOWPLOW, ALGOLIA, ELASTIC, MEILISEARCH,
    YANDEX, CLAX, BAIDU, TIANGONG, MIND, OPEN_BANDIT,
):  # fmt: skip
    FORMATS.register(_format)
