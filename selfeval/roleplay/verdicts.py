"""Read the scores out of a juror's reply, or say that there are none.

A score is a number from 0 (surely a program) to 1 (surely a human being), either in a JSON object or after its tag at
the beginning of a line. What is anything else (85, 20 %, nan, a range, no number) is no score: nothing is rescaled,
guessed, or given a default.
"""
