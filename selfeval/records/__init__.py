"""Records on disk: texts, prompts, predictions, and the files of others.

`tables` reads and writes files, `tasks` says which questions there are. Predictions are read by
`foreign`, in whose files `fields` have other headings, `values` other forms, authors other `names`,
and pairs other `places`.
"""
