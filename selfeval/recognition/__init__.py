"""Does a model recognise its own text? Prompts, texts, questions, answers and controls."""
