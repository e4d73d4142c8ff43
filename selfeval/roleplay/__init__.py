"""Role-play before a jury: does a model pass for a human support agent?

An interrogator asks, an agent answers in a persona, and jurors say turn by turn how human the
answers are: alone, or in a debate (ChatEval, arXiv 2308.07201). Conversations between people are
the reference; without them a score says nothing.

  transcripts        a conversation, its exchanges, and files of them
  conversation       who asks and who answers; chats between people, a model in one's place
  roles              the entries of data/roleplay/, a person who types, the scripted floor
  run                who sits on the jury in which order, one verdict and many
  published          what `selfeval roleplay` and `selfeval compare` do
  prompts            what a juror is asked
  scoring            what jurors' replies say, and what they come to
  verdicts, shown    files of verdicts, and how a conversation is shown with its verdicts
  votes, measures    agreement, the tables of a jury, and judges that read nothing
  simulated          jurors and talkers whose traits are known
"""
