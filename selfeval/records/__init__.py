"""Records on disk: texts, prompts, predictions, and the files of others.

`tables` reads and writes files, `tasks` says which questions there are. Predictions are read by
`foreign`: `fields` says which there are, `values` what must hold of them, `names` who is meant.
"""
