"""What does a language model know about itself: providers, prompts, scoring and statistics for the notebooks."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data"
FIGURES = ROOT / "figures"
