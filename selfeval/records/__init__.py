"""Records on disk: texts, prompts, predictions, and the files of others."""
