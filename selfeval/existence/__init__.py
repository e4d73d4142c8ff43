"""Does a model know which models exist?"""

from selfeval.existence import simulated as simulated  # so that simulated models can be asked
