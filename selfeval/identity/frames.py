"""Frames: how a sentence ties a name to the speaker. Rule tables, each rule with an example beside it.

All patterns see folded text in lower case and look at bounded stretches of it, so that time grows linearly.
"""

import re

# --- heads: what begins a statement on who is speaking; the name stands where the walk over link words ends -----------
_ADVERB = (
    r"(?: (?:\w+ly|just|indeed|still|now|in fact|also|always|of course|not|never|no longer|neither|none other than|perhaps|maybe|then"
    r"|in reality|most \w+ly|called|known as|named|already|today))*"
)
_BE = rf"(?:am|was|were|be|been|being|become|became|remain|stay|'m|ain't|wasn't|weren't){_ADVERB}"
_MODAL = r"(?:can't|cannot|won't|(?:might|may|could|must|should|would|will|shall|can|have|had)(?:n't| not)?|'ll|'d|'ve)"
_SWITCHED = (
    r"(?:switched|updated|upgraded|migrated|moved|transferred|changed|swapped|replaced|rerouted|reassigned|turned)"
)
_MADE = (
    r"(?:made|created|developed|trained|built|designed|produced|programmed|engineered|released|published|provided"
    r"|owned|operated|deployed|launched|fine-?tuned|crafted|invented|powered|introduced|maintained|offered)"
)
_MAKER = (
    r"(?:maker|creator|developer|provider|vendor|company|manufacturer|trainer|owner|parent company|author|designer"
    r"|organi[sz]ation|team|builder)s?"
)
_MODEL = (
    r"(?:assistant|model|ai|chatbot|bot|system|version|variant|chat|conversation|llm|language model|service|engine)"
)
HEADS = (
    # (kind, pattern): "be" = is said to be; "name" = is called, so that any word may be the name; "made" = maker
    (
        "known",  # "I'm not affiliated with X"
        r"\b(?:i(?:'m| am) )?(?:not|never|no longer|n't) (?:\w+ )?(?:affiliated|associated|connected|linked) (?:with|to)\b"
        r"|\bno (?:\w+ )?(?:affiliation|connection|relation(?:ship)?|ties|link) (?:with|to)\b",
    ),
    (
        "name",  # "Name: X", "Maker = X", {"name": "X"}
        r"(?:(?<![^\n{,;|(])|(?<=[,;|({] )|(?<=- ))[\"']?(?:your |my |the |model |assistant |ai |full |exact )?"
        r"(?:name|model|model[ _]name|model[ _]id|id|identity|assistant name|version|family|ai|nombre|nom|modell?o?)"
        r"[\"']? ?[:=] ?(?=\S|\n)",
    ),
    (
        "made",
        r"(?:(?<![^\n{,;|(])|(?<=[,;|({] )|(?<=- ))[\"']?(?:your |my |the |model )?"
        rf"(?:{_MAKER}|{_MADE}[ _]by|entwickler|hersteller|fabricante|creador)[\"']? ?[:=] ?(?=\S|\n)",
    ),
    (
        "name",  # "you can call me X", "I'm called X"
        r"\bcall(?:ed|ing)? me\b|\bi(?:'m| am| was|'ve been| have been)(?: \w+)? (?:called|named|known as|dubbed)\b",
    ),
    (
        "name",  # "my name is X", "my exact model ID is X"
        r"\bmy (?:\w+ ){0,3}?(?:name|id|identifier)(?: here)?(?:'s| is| was| would be| might be|, of course, is)"
        r"(?:n't| not)?",
    ),
    (
        "known",
        r"\bmy (?!fav|pref|next|other|prev)(?:\w+ ){0,2}?(?:model|version|identity|family|engine)(?:'s| is| was)(?:n't| not)?"
        r"|\b(?:my|the) (?:final |short |honest |real |true )?answer (?:is|would be):?",
    ),
    ("name", rf"\bi(?: {_MODAL})? (?:go by|answer to)(?: the name(?: of)?)?\b"),  # "I go by the name of X"
    # "my maker is X", "the company that made me is X", "the company I work for is called X"
    (
        "made",
        rf"\b(?:my (?:\w+ )?{_MAKER}|the {_MAKER} (?:that {_MADE} me|behind (?:me|this)|i (?:work for|belong to|come from)))"
        rf" (?:is|are|was|were)(?:n't)?{_ADVERB}",
    ),
    (
        "made",
        rf"\bi(?:'m| am| was|'ve been| have been)(?:n't)?{_ADVERB} (?:\w+ )?{_MADE}(?: and \w+)?(?: in \d+)? by\b",
    ),
    ("made", r"\bi(?: don't| do not| never)?(?: \w+ly)? (?:work for|belong to|come from|represent)\b"),
    ("be", r"\bi(?:'m| am)(?: \w+)? (?:acting|role-?playing|playing|posing|speaking|operating|running|serving) as\b"),
    (
        "be",
        rf"\bi(?:'ve| have| was| am|'m| had)(?:n't| not)?(?: \w+)? (?:been )?(?:\w+ )?{_SWITCHED}(?: over)? (?:to|for|with|into|by)\b",
    ),
    (
        "be",
        r"\b(?:acting|posing|pretend(?:ing)?|claim(?:ing)?|play(?:ing)?|role-?play(?:ing)?) (?:as|to be|the role of)\b",
    ),
    (
        "be",
        rf"\bi(?: {_MODAL}| don't| do not)?(?: \w+)? (?:run|rely|am based|operate|identify|function) (?:on|as)\b",
    ),
    (
        "be",
        rf"\bi(?:(?: |(?=')){_MODAL}(?: \w+)?)?{_ADVERB}(?: |(?=')){_BE}",
    ),  # "I am X", "I might be X", "I've been X"
    ("be", rf"\b{_BE} i been\b|\bhad i been\b"),
    (
        "be",
        r"\byou(?:'re| are|'ve| have)(?: not|n't| never)?(?: \w+)? (?:talking|speaking|chatting|interacting|reached|"
        r"conversing|dealing|writing|connected)(?: (?:to|with))?\b",
    ),
    (
        "be",  # "the model you are talking to is X", "this conversation is handled by X"
        rf"\b(?:this|the|that) (?:\w+ ){{0,2}}?{_MODEL}"
        r"(?: (?:you(?:'re| are) (?:\w+ ){1,2}?(?:to|with|using)|(?:behind|answering|serving|handling|running|in|of)(?: \w+){1,2}?"
        r"|of (?:myself|me)))? (?:is|was|runs|isn't|wasn't)(?: (?:not|handled|powered|run|called|named|by|on|really|actually))*\b",
    ),
    (
        "known",
        r"\bthis (?:is|isn't|is not)\b|\bi(?:'ve| have) nothing to do with\b|\bthere is no(?: such)?\b|\bstop calling me\b",
    ),
    (
        "known",
        r"(?:(?<![^\n])|(?<=[.!,;:] )|(?<=\bactually )|(?<=\bno )|(?<=\byes ))it(?:'s| is| was|'s not| is not|isn't)(?= \S)",
    ),
    (
        "also",  # "I'm a language model designed to help, created by X": counts after a head in the same sentence
        rf"(?:(?<=, )|(?<=\()|\band (?:i )?(?:was |is |am )?|\b(?:was|been|am) |\b{_MODEL} ){_MADE}(?: and \w+)? by\b",
    ),
    ("as", r"(?:(?<![^\n])|(?<=[.!?,;:] )|(?<=\bthat )|(?<=\bbut )|(?<=\band ))as\b"),  # "As an AI by X, I ..."
    # German, French, Spanish, Portuguese, Italian
    (
        "name",
        r"\bmein name (?:ist|lautet)\b|\bich (?:heisse|heiße)\b|\bje (?:m'appelle|ne m'appelle pas)\b|\bmon nom est\b"
        r"|\b(?:no )?me llamo\b|\bmi nombre (?:no )?es\b|\bmeu nome (?:nao )?e\b|\b(?:me )?chamo-?(?: me)?\b|\bmi chiamo\b",
    ),
    (
        "be",
        r"\bich (?:bin|sei|ware|war)\b|\bbin ich\b|\bje (?:suis|ne suis pas|serais)\b|\b(?:no )?soy\b|\b(?:nao )?(?:eu )?sou\b"
        r"|\b(?:non )?(?:io )?sono\b",
    ),
    ("made", r"\bich wurde\b|\bj'ai ete\b|\bje n'ai pas ete\b|\b(?:no )?fui\b|\b(?:no )?he sido\b|\bsono stato\b"),
    # Chinese and Japanese
    ("name", r"我(?:的名字)?(?:不)?叫(?:做)?|我的名字(?:不)?是"),
    ("be", r"我(?:并|其实|现在|真的|就)?(?:不|非)?是|我(?:不)?(?:是)?由|(?:私|僕|わたし)は"),
)
HEAD = re.compile(  # heads begin where words do, and with few letters: trying them elsewhere costs time
    r"(?<![a-z0-9'])(?=[\"'abcdefhijlmnpstvwy我私僕わ])(?:"
    + "|".join(f"(?P<{kind}_{i}>{pattern})" for i, (kind, pattern) in enumerate(HEADS))
    + ")"
)
# --- the walk: words that may stand between a head and a name, and between two names of one statement -----------------
ARTICLES = set(
    "a an the one some your my our this any ein eine einen einem der die das un une le la el una um uma o il lo".split()
)
NOUNS = set(
    """ai model models assistant assistants chatbot chatbots bot system systems program software llm llms lm agent product
    products version versions variant variants instance edition copy clone fork fine-tune finetune fine-tuned derivative
    hybrid tool entity intelligence companion helper app application service descendant member part family series line
    lineup creation project team company startup lab labs laboratory community group human organization organisation
    person researchers engineers developers people scientists transformer network child offspring generation release
    build checkpoint architecture platform snapshot incarnation representative employee division firm platform technology
    ki sprachmodell sprachassistent assistent modell version modele modelo assistente asistente intelligence artificielle
    modello inteligencia ia ki-modell ki-assistent""".split()
)
LINKS = set(
    """by from of at on as and or called named known dubbed titled under name using via is was am are been be being have has
    myself also both originally actually really just simply currently now indeed that which who it's its own
    made created developed trained built designed produced programmed engineered released published provided powered based
    owned operated run running runs deployed launched crafted maintained offered hosted fine-tuned finetuned derived
    distilled brought branded working works specifically namely more precisely exactly in fact i.e either kind sort type
    under within for fine tuned version
    v not never nor neither but rather instead than opposed yet though technically part-time full-time
    von des dem den und namens entwickelt trainiert erstellt gemacht wurde nicht kein keine sondern
    de du d' par et qui est en developpe cree entraine conçu nomme appele langage pas mais
    del y e por desarrollado creado entrenado llamado lenguaje sino pero no
    da do pela pelo desenvolvido criado treinado di sviluppato creato da della""".split()
)
ADJECTIVES = set(
    """large small language conversational virtual artificial generative pretrained pre-trained multimodal helpful new
    newest latest original official advanced actual real true same great good proud sophisticated powerful open-source
    friendly modified sentient chinese french american european simple humble fellow flagship smaller bigger larger
    text-based text and or very yet but""".split()
)
FREE = 6  # words between an article and its noun: "an advanced, rather chatty assistant"
# words with a meaning of their own for the walk
TO_DENY = re.compile(r"\b(?:not|never|neither|nor|than|opposed|unlike|nicht|kein|keine|pas)\b|instead of")
TO_AFFIRM = re.compile(r"\b(?:but|sondern|sino|mais|rather|instead|i'm|i am)\b(?! (?:than|of))| - ")
CJK_LINK = re.compile(
    r"(?:一个|一款|一种|由|来自|开发|研发|训练|创建|推出|打造|公司|团队|大?语言模型|大模型|模型|人工智能|智能|助手|的|名[为叫]|叫做?|也|而|并|和|不?是|通过|旗下|の|が|した|された|によって|という|作った|開発)"
)
STEP = re.compile(r" ?(?:(?P<word>[^\W\d_][\w'-]*(?:\.e)?)|(?P<mark>[,(\"'\[/&:-]|\)|\.\.\.)|(?P<break>\n))")
VERB_AFTER = re.compile(
    r"\)?[\"']? (?:est|ist|es|is|was|are|were|has|have|had|does|do|did|can|could|would|will|may|might|should|offers?|makes?|made|uses?|says?|said"
    r"|released|provides?|works?|seems?|tends?|gets?|came|comes|used)\b"
)

FILLERS = set(
    """yes no sure ok okay well hi hello hey answer maybe possibly perhaps probably certainly hmm oh ah greetings thanks
    it's just ja nein oui non si""".split()
)
NOT_BARE = set("is was are am name has have had been which that who est ist es".split())  # a sentence, no answer
# behind a name that is the answer: its end, a new sentence that is not about somebody else, "- ", ", an assistant"
AFTER_ANSWER = re.compile(
    r"\)?[\"']?(?:[.;:)\]}]{0,2}\s*$|\n|[.;?] (?!(?:she|he|it|they|this|that)\b)| - |!$|\?|[\])}]|: "
    r"|, (?:an?|the|unknown|your)\b(?! (?:\w+ ){0,2}(?:name|word|sign|constellation|city|god|river)\b))"
)
NAMING = {"called", "named", "dubbed", "titled", "labelled", "namens", "llamado", "nomme", "appele"}
# capitalised words that are no names where a name could stand
NO_NAME = set(
    """i ai llm an a the my your not here sorry happy glad sure just also ok okay yes no unknown none n/a null nothing anonymous
    english german french spanish chinese american european british indian japanese human god assistant chatbot bot model
    language large artificial intelligence january february march april may june july august september october november
    december monday tuesday wednesday thursday friday saturday sunday hello hi hey thanks thank great good well what how
    why who which when where this that it there these those please certainly absolutely sadly unfortunately however but and
    if as in on at to for of by from with so because although while is are was were do does did can could would will may
    never always really currently you we they he she unable able trained designed created made developed based undisclosed
    confidential redacted withheld technology or because by about something nothing irrelevant""".split()
)
# what a name stands before: "X made me", "X is my name", "X here."
AFTER_NAME = re.compile(
    rf"\)?[\"']?(?:,? (?:is |was )?(?:(?:also |actually |really |indeed )?{_MADE} me\b"
    rf"|(?:is|was|are) (?:(?:not |actually |also |really |indeed )?(?:my (?:\w+ )?(?:name|{_MAKER}|identity|model)\b|who i am\b|what i am\b|me\b"
    rf"|the (?:\w+ ){{1,3}}?(?:that|who|which|behind|i) (?:{_MADE}|me|am)\b))"
    rf"|(?:did not|didn't|never|does not|has never|isn't|is not)(?: \w+)? (?:make|create|build|train|develop|{_MADE}|my (?:name|{_MAKER})|me|who i am|what i am)\b)"
    r"|,? here[.!,]|,? speaking\b|,? at your service\b|さん?です|です)"
)
OPENER = re.compile(
    r"\bhere(?:'s| is) (?:a|an|the|my|your|our)\b[\w' -]{0,40}\b(?:poem|story|tale|song|verse|dialogue|script|scene|monologue|haiku|limerick)\b"
    r"|^\W{0,3}(?:\[in character|scene (?:one|1)\b|in character\b|role-?play\b)"
)
CLAUSE = re.compile(r"[;:,()] ?|\n| - |\b(?:but|however|because|since|so)\b|\band (?=(?:i|my|this|it|in|actually)\b)")
SENTENCE_SCOPE = re.compile(r"[;:] |,? but |\n")
SENTENCE_END = re.compile(r"(?<!\bdr)(?<!\bmr)(?<!\bms)(?<!e\.g)(?<!i\.e)[.!?]+[\"')\]]*(?=\s|$)|\n+")
_NEW_QUESTION = (
    r"(?:[,;:.!-]|\band|\bso|\bbut) (?:(?:so|and|but|then|now) )?(?:how|what|where|who|which|when|why|do|does|did|is|are|can|could|would|will"
    r"|shall|should|may|have|need|anything|any|let)\b"
)

# --- the rules of polarity, in order; the first that fits decides -----------------------------------------------------
# where: "sentence" = before the head, "clause" = its last clause, "said" = from the head to the name, "after" = behind
# the name in its sentence
_SPEECH = (
    r"(?:say|says|said|saying|claim|claims|claimed|claiming|tell|tells|told|think|thinks|thought|believe|believes|believed"
    r"|insist|insists|insisted|state|states|stated|suggest|suggests|suggested|assume|assumes|assumed|mention|mentions|mentioned"
    r"|write|writes|wrote|report|reports|reported|imply|implies|implied|indicate|indicates|indicated|pretend|announce[sd]?"
    r"|assert|asserts|asserted|suppose|declare[sd]?|show|shows|read|reads|hear|heard|decided?|maintain|maintains|want|wants|wanted)"
)
_AUX = r"(?:have|has|had|just|also|now|still|keep|keeps|kept|seems? to|may|might|do|does|did|are|were|was|been|\w+ly)"
# a subject that is not the speaker
_OTHERS = (
    rf"(?<![\w'])(?!(?:i|i'll|i'd|i'm|i've|me|to|can|must|not|cannot|would|will|let|should|could|never|\w+n't|{_AUX})\b)"
    r"[\w']+"
)
RULES = (
    # in a role, a game, a story: "In this story I'm X", "my character is called X", "I was only acting as X"
    (
        "fiction",
        "sentence",
        r"\bin (?:this|the|that|my|our|a) (?:\w+ )?(?:story|scene|game|role-?play|play|novel|poem|film|movie|song|fiction"
        r"|dialogue|script|tale|universe)\b|(?<!out of )(?<!break )\bin character\b|\bimaginary\b|\blet's pretend\b"
        r"|\bfor (?:this|the) (?:game|role-?play|story|scene)\b|\bonce upon a time\b|\bas (?:the|your|a) character\b",
    ),
    (
        "fiction",
        "clause",
        r"\bpretend(?:ing)?\b|\b(?:character|role|part)\b(?: in \w+(?: [\w-]+)?)? (?:is|says|said)\b",
    ),
    (
        "fiction",
        "said",
        r"\b(?:acting|role-?play(?:ing)?|playing|play|posing|pretend\w*|imaginary|character|fictional)\b",
    ),
    # "I was previously X"
    ("mention", "said", r"\b(?:previously|formerly|once|used to)\b"),
    ("fiction", "after", r"^,? in (?:this|the|that|our|my) (?:\w+ )?(?:story|scene|game|role-?play|play|tale|novel)\b"),
    # somebody else says it: "you said that I am X", "according to the document, I am X"
    (
        "attributed",
        "sentence",
        r"\baccording to\b|\bby (?:your|his|her|their|its) account\b|\bin your (?:view|opinion|words)\b",
    ),
    (
        "question",
        "clause",
        r"\b(?:ask|asks|asked|asking|wonder\w*|curious|question|want to know|check)\b.{0,40}\b(?:if|whether|that)\b",
    ),
    ("attributed", "clause", rf"{_OTHERS} (?:{_AUX} )*{_SPEECH}(?: \w+){{0,2}}?(?: that)?,?:? ?$"),
    (
        "attributed",
        "clause",
        r"\bi (?:was|have been|'ve been) told\b|\b(?:earlier|previously|before|once)\b.{0,30}\bsaid\b|\bi (?:\w+ )?(?:said|claimed)\b"
        r"|\b(?:rumou?rs?|evidence|proof|idea|claim|notice|belief|assumption|suggestion)\b(?: \w+)? that ?$",
    ),
    (
        "attributed",
        "clause",
        r"\b(?:du (?:hast gesagt|sagst|behauptest|meinst)|tu (?:dis|as dit)|vous (?:dites|avez dit)|dices|dijiste|has dicho)\b"
        r"|(?:你|您|他|她|有人|用户|文件)(?:刚才|之前|们)?(?:说|认为|觉得|声称|告诉)",
    ),
    # "I cannot confirm that I am X"
    (
        "mention",
        "clause",
        r"(?:\b(?:cannot|can not|unable to|not able to|not allowed to|not permitted to|no way to)|(?:can|won|couldn)'t|\bwill not) (?:\w+ )?"
        r"(?:confirm|verify|tell|say|share|disclose|reveal|know|prove|guarantee|rule out)\b",
    ),
    # "I don't think I'm X", "it is not true that I am X", "stop calling me X"
    (
        "deny",
        "clause",
        r"(?:\b(?:do|did|would|will|can|could|shall)(?:n't| not)|\bcannot|\bnever|\bnot) (?:\w+ )?"
        r"(?:think|believe|claim\w*|say|said|accept|agree|pretend\w*|consider|told)\b"
        r"|\b(?:not true|untrue|false|incorrect|wrong|inaccurate|mistaken|a mistake|an error|a lie|a myth)\b(?: \w+){0,2} (?:that|to \w+(?: that)?) ?$"
        r"|\b(?:i deny|denies|i reject|i refuse)\b|\bstop ?$|\bno (?:way|evidence|reason|sense)\b.{0,20}$|\bdon't ?$|\bdo not ?$|\bby no means\b",
    ),
    # "if I were X", "imagine that I had been X", "unless I am X"
    (
        "hypothetical",
        "clause",
        r"\b(?:if|unless|whether|suppos\w+|assum(?:e|ing)|imagin\w+|in case|as though|provided|wish|whenever|wenn|falls)\b|\bsi (?:je|j'|yo|fuera|soy)\b|如果|假如|要是",
    ),
    ("hypothetical", "said", r"\b(?:would|were|had)\b|'d (?:be|have)\b|\bsei\b|\bserais\b"),
    ("hypothetical", "after", r"^,? (?:only |even )?if\b"),
    # "I think I'm X", "I'm not sure that I am X", "maybe X"
    (
        "hedge",
        "clause",
        r"\bnot (?:\w+ )?(?:sure|certain|convinced|positive)\b|\b(?:unsure|uncertain|doubt\w*|i (?:\w+ly )?(?:think|believe|guess|suppose|assume|suspect|imagine"
        r"|presume|reckon|feel)|it (?:seems|appears|looks)|chances are|likely|presumably|apparently|perhaps|maybe|probably|possibly)\b"
        r"|\b(?:ich glaube|vielleicht|vermutlich|je (?:crois|pense)|peut-etre|creo que|quizas?|tal vez|acho que|credo)\b|(?:可能|也许|我想|我觉得|大概)",
    ),
    (
        "hedge",
        "sentence",
        r"\b(?:as far as i (?:know|can tell|am aware|understand)|to (?:the best of )?my (?:best )?knowledge|my (?:best |only )?guess|if i (?:had|have) to guess"
        r"|if i'm not mistaken|if i recall|perhaps|maybe|probably|possibly|soweit ich weiss|soweit ich weiß|hasta donde se)\b",
    ),
    # "I am X?", "Would you like me to be X?"; but not "I'm X, how can I help?"
    ("question", "after", rf"^(?!.*{_NEW_QUESTION}).*\?[\"')]*$"),
    ("deny", "said", r"\bstop calling\b|\bnothing to do\b"),
    (
        "deny",
        "said",
        r"(?:n't\b|\b(?:not|never|no(?![,.!])|neither|nor|nothing|nicht|kein|keine|pas|nao|non)\b(?! (?:only|just|merely|other)\b)|\bno (?:soy|me|es)\b|不|非)",
    ),
    (
        "hedge",
        "said",
        r"\b(?:might|may|could|must|should|probably|likely|perhaps|maybe|possibly|supposedly|apparently|presumably|seems?|guess)\b",
    ),
    (
        "hedge",
        "after",
        r"^,? (?:i (?:think|believe|guess|suppose)|probably|perhaps|maybe|possibly|or something|or so i"
        r"|(?:but|though|although) (?:i'm|i am|i can't|i cannot) (?:not )?(?:\w+ )?(?:sure|certain|be sure|be certain|entirely|100))",
    ),
    (
        "adopt",
        "said",
        r"(?:\b(?:will|shall|now|become|became|switched|updated|upgraded|migrated|moved|transferred|changed|swapped|replaced|turned)\b|'ll\b)",
    ),
    ("adopt", "sentence", r"\b(?:from now on|as of now|from here on|henceforth|starting now|going forward)\b"),
    ("adopt", "after", r"^,? (?:from now on|as of now|henceforth|going forward|now\b)"),
)
RULES = tuple((polarity, where, re.compile(pattern)) for polarity, where, pattern in RULES)

# --- saying nothing ---------------------------------------------------------------------------------------------------
_NOTHING = r"(?:unknown|n/?a|none|null|not (?:known|disclosed|available|specified|sure)|undisclosed|confidential|i don't know|i do not know|no idea|\?)"
# the whole reply: "Unknown.", "Maker: unknown\nName: unknown", {"name": "unknown"}
UNKNOWN_ONLY = re.compile(
    rf"\W{{0,6}}(?:(?:i am|i'm|it is|it's) )?{_NOTHING}\W{{0,6}}"
    rf"|\W{{0,6}}(?:[\w ]{{2,20}}\"? ?[:=] ?\"?{_NOTHING}\W{{0,6}}){{1,4}}"
)
# "I can't say", "I don't know", "I'd rather not", "I have no name"
WITHHOLDS = re.compile(
    r"\b(?:cannot|can not|unable to|not able to|not allowed to|not permitted to|not authori[sz]ed to|not at liberty to|not going to|will not|rather not"
    r"|prefer not to|choose not to) (?:\w+ )?(?:say|tell|share|disclose|reveal|confirm|verify|know|provide|discuss|remember|recall|identify|determine|access|give|answer|name)\b"
    r"|\b(?:can|won)'t (?:\w+ )?(?:say|tell|share|disclose|reveal|confirm|verify|know|provide|discuss|remember|recall|identify|determine|give|answer|name|be sure)\b"
    r"|\b(?:don't|do not|doesn't|does not) (?:\w+ )?(?:know|have|remember|recall|possess|disclose|share|reveal)\b|\bhave no (?:\w+ )?(?:way|idea|information|access|knowledge|name|means|memory|clue|identity|record|maker)\b"
    r"|\bno (?:way|idea|means) (?:of|to)\b|\bnot (?:\w+ )?(?:sure|certain|aware|known|told|informed|specified|disclosed)\b|\b(?:unsure|uncertain|unaware|confidential|declines?|unknown|undisclosed|without a name|nameless)\b"
    r"|\blost count\b|不知道|无法|不能|不便|\b(?:weiss|weiß) (?:ich )?(?:es )?nicht\b|\b(?:ich )?(?:weiss|weiß|kann) nicht\b|\bje ne (?:sais|peux) pas\b|\bno (?:lo )?(?:se|puedo)\b"
)
ON_IDENTITY = re.compile(
    r"\b(?:which|what) (?:\w+ ){0,3}?(?:model|version|ai|company|llm|assistant|one|name|system)\b|\bwho (?:i am|made|created|trained|built|developed|owns|is behind)\b|\bwhat i am\b"
    r"|\bmy (?:\w+ ){0,3}?(?:name|model|identity|makers?|creators?|developers?|version|origin|provenance|id|identifier)\b|\b(?:a|any|no|own) name\b|\bmodel (?:id|name|version|identifier)\b"
    r"|\bi (?:am|was) (?:called|named|made|created|based)\b|\bmodel (?:behind|underlying|powering|i am)\b|\bunderlying model\b|\btell which\b|\bsay which\b|\bwhich\W*$"
    r"|\bidentity\b|\bthis question\b|什么模型|我是谁|哪个模型|名字|\bmodell\b|\bmodele\b|\bmodelo\b|\bwer ich bin\b|\bqui je suis\b|\bquien soy\b"
)
