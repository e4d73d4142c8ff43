"""Does a model recognise its own text? Prompts, texts, questions, answers and controls."""

from selfeval.recognition import simulated as simulated_evaluators  # so that they can be asked
