"""Identity: which model does a model say it is, asked plainly and under pressure?"""

import sys

# jsonschema does without: a second of import, for one format
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

from selfeval.identity.published import *  # noqa: E402, F403 - what published scripts import
from selfeval.identity.published import save_results as save_results  # noqa: E402
