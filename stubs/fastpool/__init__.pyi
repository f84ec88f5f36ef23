"""The public names. The stubs of `_api` and of the front ends hold their types."""

from ._api.adaptive import adaptive_avg_pool as adaptive_avg_pool
from ._api.adaptive import adaptive_max_pool as adaptive_max_pool
from ._api.adaptive import global_avg_pool as global_avg_pool
from ._api.adaptive import global_lp_pool as global_lp_pool
from ._api.adaptive import global_max_pool as global_max_pool
from ._api.adaptive import plan_adaptive_avg_pool as plan_adaptive_avg_pool
from ._api.adaptive import plan_adaptive_max_pool as plan_adaptive_max_pool
from ._api.adaptive import plan_global_avg_pool as plan_global_avg_pool
from ._api.adaptive import plan_global_lp_pool as plan_global_lp_pool
from ._api.adaptive import plan_global_max_pool as plan_global_max_pool
from ._api.average import avg_pool as avg_pool
from ._api.average import plan_avg_pool as plan_avg_pool
from ._api.blocks import block_reduce as block_reduce
from ._api.blocks import pyramid as pyramid
from ._api.lp import lp_pool as lp_pool
from ._api.lp import plan_lp_pool as plan_lp_pool
from ._api.maximum import max_pool as max_pool
from ._api.maximum import max_unpool as max_unpool
from ._api.maximum import plan_max_pool as plan_max_pool
from ._api.maximum import plan_max_unpool as plan_max_unpool
from ._api.minimum import adaptive_min_pool as adaptive_min_pool
from ._api.minimum import global_min_pool as global_min_pool
from ._api.minimum import min_pool as min_pool
from ._api.minimum import plan_adaptive_min_pool as plan_adaptive_min_pool
from ._api.minimum import plan_global_min_pool as plan_global_min_pool
from ._api.minimum import plan_min_pool as plan_min_pool
from ._plans import AvgPoolPlan as AvgPoolPlan
from ._plans import LpPoolPlan as LpPoolPlan
from ._plans import MaxPoolPlan as MaxPoolPlan
from ._plans import MinPoolPlan as MinPoolPlan
from ._plans import UnpoolPlan as UnpoolPlan

__version__: str

def get_include() -> str: ...
def set_plan_cache_limit(nbytes: int) -> int: ...
def show_config() -> None: ...
