"""Role-play before a jury: does a model pass for a human support agent?

An interrogator asks, an agent answers in a persona, and jurors say turn by turn how human the answers are: alone, or
in a debate (ChatEval, arXiv 2308.07201). Conversations between people are the reference; without them a score says
nothing.

  transcripts    Conversation, its exchanges, files of them, the published output files
  conversation   who asks and who answers: models, scripts, people; many conversations at once
  cast           the personas and strategies of data/roleplay/, the scripted floor, a person who types
  humans         conversations between people, and the same ones with a model in one person's place
  panel, prompts, verdicts   who sits on the jury, what jurors are asked, and what their replies say
  hearing, jury   one verdict: alone, asked again, in a debate; many at once, and the record
  report, figures   what the jury's notebook shows
  simulated      jurors and talkers whose habits are known
  commands       what `selfeval roleplay` and `selfeval compare` do
"""
