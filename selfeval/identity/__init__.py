"""Identity: which model does a model say it is, asked plainly and under pressure?"""

from selfeval.identity import simulated as simulated  # so that simulated models can be asked who they are
from selfeval.identity.published import EvalRunner, save_results

__all__ = ["EvalRunner", "save_results"]
