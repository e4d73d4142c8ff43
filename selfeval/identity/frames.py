"""Frames: how a sentence ties a name to the speaker. Rule tables, each rule with an example beside it.

All patterns see folded text in lower case (`selfeval.identity.plain`) and look at bounded stretches of it, so that time
grows linearly with the reply.
"""

import re

# --- building blocks --------------------------------------------------------------------------------------------------
_ADVERB = (
    r"(?: (?:\w+ly|just|indeed|still|now|in fact|also|always|of course|not|never|no longer|neither|none other than"
    r"|perhaps|maybe|then|in reality|most \w+ly|called|known as|named|already|today))*"
)
_BE = rf"(?:am|was|were|be|been|being|become|became|remain|stay|'m|ain't|wasn't|weren't)\b{_ADVERB}"
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
_FIELD = r"(?:(?<![^\n{,;|(])|(?<=[,;.!|({] )|(?<=- ))[\"']?"  # where "Name:" may stand
_COLON = r"[\"']? ?[:=] ?(?=\S|\n)"
_CLAUSE_START = r"(?:(?<![^\n])|(?<=[.!?,;:] )|(?<=\bthat )|(?<=\bbut )|(?<=\band ))"

# --- heads: what begins a statement on who is speaking; the name stands where the walk over link words ends -----------
HEADS = (
    # known: only known names follow   be: is said to be   name: is called, any word may be the name   made: has a maker
    # it: the name follows at once     as: "As X, I ..."   also: goes on from a head in the same sentence
    ("name", rf"{_FIELD}(?:your |my |the |model |assistant |ai |full |exact )?(?:name|model|model[ _]name|model[ _]id"
             rf"|id|identity|assistant name|version|family|ai|modellname|modell?o?"
             rf"|(?:nombre|nome?)(?: d(?:el|u|o) modell?[eo])?|(?:模型)?名称|モデル名"
             rf"|(?:название|модель|имя)(?: модели)?){_COLON}"),  # "Name: X"
    ("made", rf"{_FIELD}(?:your |my |the |model )?(?:{_MAKER}|{_MADE}[ _]by|entwickler|hersteller|fabricante?|creador"
             rf"|produttore|开发者|開発元|разработчик){_COLON}"),  # "Maker: X"
    ("known", r"\b(?:i(?:'m| am) )?(?:not|never|no longer|n't) (?:\w+ )?(?:affiliated|associated|connected|linked)"
              r" (?:with|to)\b|\bno (?:\w+ )?(?:affiliation|connection|relation(?:ship)?|ties|link) (?:with|to)\b"
              r"|\bi(?:'ve| have) nothing to do with\b"),  # "I'm not affiliated with X"
    ("name", r"\bmy (?:\w+ ){0,3}?(?:name|id|identifier)(?: here)?(?:'s| is| was| would be| might be|, of course, is)"
             r"(?:n't| not)?|(?:(?<![^\n])|(?<=[.!,] ))the name(?:'s| is)\b"),  # "my name is X", "my model ID is X"
    ("known", r"\bmy (?!fav|pref|next|other|prev)(?:\w+ ){0,2}?(?:model|version|identity|family|engine)"
              r"(?:'s| is| was)(?:n't| not)?"
              r"|\b(?:my|the) (?:final |short |honest |real |true )?answer (?:is|would be):?"),  # "my model is X"
    ("name", r"\bcall me\b|\b(?:they|people|everyone|users|friends|my \w+)(?: \w+)? (?:named|called) me\b"
             r"|\bi(?:'m| am| was|'ve been| have been)(?: \w+)? (?:called|named|known as|dubbed)\b"),  # "call me X"
    ("known", r"\b(?:called|calls|calling) me\b|\bme as\b"),  # "you called me X", "it describes me as X"
    ("name", rf"\bi(?: {_MODAL})? (?:go by|answer to)(?: the name(?: of)?)?\b"),  # "I go by the name of X"
    ("made", rf"\b(?:my (?:\w+ )?{_MAKER}|the {_MAKER} (?:that {_MADE} me|behind (?:me|this)"
             rf"|i (?:work for|belong to|come from))) (?:is|are|was|were)(?:n't)?{_ADVERB}"),  # "my maker is X"
    ("made", rf"\bi(?:'m| am| was|'ve been| have been)(?:n't)?{_ADVERB} (?:\w+ )?{_MADE}(?: and \w+)?(?: in \d+)?"
             r" by\b"),  # "I was created by X"
    ("made", rf"\bmy (?:training|development|creation) (?:was|is) \w+ by\b|\b{_MADE} me (?:at|in)\b"),
    ("made", r"\bi(?: don't| do not| never)?(?: \w+ly)? (?:work (?:for|at)|belong to|come from|represent)\b"),
    ("be", r"\bi(?:'m| am| was)(?: \w+)?"
           r" (?:acting|role-?playing|playing|posing|speaking|operating|running|serving) as\b"),  # "I'm acting as X"
    ("be", rf"\bi(?:'ve| have| was| am|'m| had)(?:n't| not)?(?: \w+)? (?:been )?(?:\w+ )?{_SWITCHED}(?: over)?"
           r" (?:to|for|with|into|by)\b"),  # "I've been switched to X"
    ("be", rf"\bi(?:'ve| have)?(?: {_MODAL}| don't| do not| never| \w+ly)*"
           r" (?:claim(?:ed)?|pretend(?:ed)?|refuse|want|wish) to be(?: called)?\b"),  # "I never claimed to be X"
    ("be", r"\b(?:acting|posing|pretend(?:ing)?|claim(?:ing)?|play(?:ing)?|role-?play(?:ing)?)"
           r" (?:as|to be|the role of)\b"),
    ("be", rf"\bi(?: {_MODAL}| don't| do not)?(?: \w+)? (?:run|rely|am based|operate|identify|function) (?:on|as)\b"),
    ("be", rf"\bi(?: {_MODAL}| don't| do not)?(?: \w+)? (?:consider|think of|see|regard|describe) myself(?: as)?\b"),
    ("be", rf"\bim\b{_ADVERB}|\bi(?:(?: |(?=')){_MODAL}(?: \w+)?)?{_ADVERB}(?: |(?=')){_BE}"),  # "I am X", "I'd be X"
    ("be", r"\bhad i been\b|\bwere i\b(?: \w+ly)?(?: to be)?"),
    ("be", r"\byou(?:'re| are|'ve| have)(?: not|n't| never)?(?: \w+)? (?:talking|speaking|chatting|interacting|reached"
           r"|conversing|dealing|writing|connected)(?: (?:to|with))?\b"),  # "you are talking to X"
    ("be", rf"\b(?:this|the|that) (?:\w+ ){{0,2}}?{_MODEL}(?: (?:you(?:'re| are) (?:\w+ ){{1,2}}?(?:to|with|using)"
           r"|(?:behind|answering|serving|handling|running|in|of)(?: \w+){1,2}?|of (?:myself|me)))?"
           r" (?:is|was|runs|isn't|wasn't)"
           r"(?: (?:not|handled|powered|run|called|named|by|on|really|actually))*\b"),  # "this chat is handled by X"
    ("known", r"\bthis (?:is|isn't|is not)\b|\bthere(?: is|'s) no(?: such)?\b|\bstop calling me\b"),  # "this is X"
    ("it", r"(?:(?<![^\n])|(?<=[.!,;:] )|(?<=\bactually )|(?<=\bno )|(?<=\byes )"
           r"|(?<=\breflection )|(?<=\bsecond thought ))it(?:'s not| is not|'s| is| was|isn't)(?= \S)"),  # "It's X."
    ("as", rf"{_CLAUSE_START}(?:as|instead of)\b"),  # "As an AI by X, I ...", "Instead of X, I am ..."
    ("also", rf"(?:(?<=, )|(?<=\()|\band (?:i )?(?:was |is |am )?|\b(?:was|been|am) |\b{_MODEL} ){_MADE}(?: and \w+)?"
             r" by\b"),  # "I'm a model designed to help, created by X"
    # German, French, Spanish, Portuguese, Italian, Chinese, Japanese
    ("name", r"\bmein name (?:ist|lautet)\b|\bich (?:heisse|heiße)\b|\bje (?:m'appelle|ne m'appelle pas)\b"
             r"|\bund (?:heisse|heiße)\b|\bmon nom est\b|\b(?:no )?me llamo\b|\bmi nombre (?:no )?es\b"
             r"|\bmeu nome (?:nao )?e\b|\bmi chiamo\b"),
    ("be", r"\bich (?:bin|sei|ware|war)\b|\bbin ich\b|\bje (?:suis|ne suis pas|serais)\b|\b(?:no )?soy\b"
           r"|\b(?:nao )?(?:eu )?sou\b|\b(?:non )?(?:io )?sono\b"),
    ("be", r"\b(?:du sprichst|sie sprechen|ihr sprecht)(?: hier| gerade)?(?: nicht)? mit\b|\bhier ist\b"
           r"|\b(?:vous parlez|tu parles|vous discutez)(?: pas| actuellement)?(?: a| avec)\b"
           r"|\b(?:no )?(?:estas|esta) (?:hablando|chateando) con\b|\b(?:no )?hablas con\b"),
    ("made", r"\bmein (?:entwickler|hersteller) (?:ist|heisst|heißt)\b|\bmon (?:createur|developpeur) est\b"
             r"|\bmi (?:creador|desarrollador|fabricante) es\b"),
    ("made", r"\bich (?:wurde|bin)(?: nicht)? (?:von|bei)\b|\bich wurde\b|\bj'ai ete\b|\bje n'ai pas ete\b"
             r"|\b(?:no )?fui\b|\b(?:no )?he sido\b|\bsono stato\b"),
    ("name", r"我(?:的名字)?(?:不)?叫(?:做)?|我的名字(?:不)?是"),
    ("be", r"我(?:并|其实|现在|真的|就)?(?:不|非)?是|我(?:不)?(?:是)?由"
           r"|(?:你|您)(?:现在|正在)*(?:不是)?(?:在)?(?:和|与|跟)|(?:私|僕|わたし)は"),
)  # fmt: skip
HEAD = re.compile(  # heads begin where words do, and with few letters: trying them elsewhere costs time
    r"(?<![a-z0-9'])(?=[\"'abcdefhijlmnopstuvwy我你您私僕わ模名开開モмнир])(?:"
    + "|".join(f"(?P<{kind}_{i}>{pattern})" for i, (kind, pattern) in enumerate(HEADS))
    + ")"
)
# "X made me", "X is my name", "X here.": a statement whose name comes first
AFTER_NAME = re.compile(
    rf"\)?[\"']?(?:,? (?:is |was )?(?:(?:also |actually |really |indeed )?{_MADE} me\b"
    r"|(?:is|was|are) (?:not |actually |also |really |indeed )?"
    rf"(?:my (?:\w+ )?(?:name|{_MAKER}|identity|model)\b|who i am\b|what i am\b|me\b"
    rf"|the (?:\w+ ){{1,3}}?(?:that|who|which|behind|i) (?:{_MADE}|me|am)\b)"
    rf"|had no (?:part|hand|role|say) in\b|(?:did not|didn't|never|does not|has never|isn't|is not)(?: \w+)?"
    rf" (?:make|create|build|train|develop|{_MADE}|my (?:name|{_MAKER})|me|who i am|what i am)\b)"
    r"| (?:hat|haben) mich (?:nicht )?(?:\w+ )?(?:entwickelt|gebaut|erschaffen|trainiert|gemacht|hergestellt)\b"
    r"| (?:ne )?m'a(?: pas)? (?:cree|developpe|entraine|concu|fabrique)|(?: no)? me (?:creo|desarrollo|entreno|hizo)\b"
    r"|(?:公司)?(?:开发|创造|训练|研发|创建)了我"
    r"|,? here[.!,]|,? speaking\b|,? at your service\b|さん?です|です)"
)

# --- the walk: words that may stand between a head and a name, and between two names of one statement -----------------
ARTICLES = set(
    """a an the one some your my our this any ein eine einen einem der die das un une le la el una um uma o il
    lo""".split()
)
NOUNS = set(
    """ai model models assistant assistants chatbot chatbots bot system systems program software llm llms lm agent
    product products version versions variant variants instance edition copy clone fork fine-tune finetune fine-tuned
    derivative hybrid tool entity intelligence companion helper app application service descendant member part family
    series line lineup creation project team company startup lab labs laboratory community group human organization
    organisation person researchers engineers developers people scientists folks transformer network child offspring
    generation release build checkpoint architecture platform snapshot incarnation representative employee division
    firm technology firma unternehmen labor konzern entreprise societe empresa compania laboratorio
    ki sprachmodell sprachassistent assistent modell modele modelo assistente asistente artificielle modello
    inteligencia ia ki-modell ki-assistent""".split()
)
LINKS = set(
    """by from of at on as and or under name using via within for is was am are been be being have has that which who
    it's its own myself also both now indeed either kind sort type in fact i.e more precisely rather instead opposed yet
    though but not never nor neither no
    made created developed trained built designed produced programmed engineered released published provided powered
    based owned operated run running runs deployed launched crafted maintained offered hosted fine-tuned finetuned fine
    tuned derived distilled brought branded working works
    gebaut hergestellt hecho hecha fabrique concu desarrollada creada entrenada developpee creee
    von des dem den und entwickelt trainiert erstellt gemacht wurde nicht kein keine sondern
    de du d' par et qui est en developpe cree entraine langage pas mais
    del y e por desarrollado creado entrenado lenguaje sino pero
    da do pela pelo desenvolvido criado treinado di sviluppato creato della""".split()
)
NAMING = {"called", "named", "known", "dubbed", "titled", "labelled", "namens", "llamado", "nomme", "appele"}
ADJECTIVES = set(
    """large small language conversational virtual artificial generative pretrained pre-trained multimodal helpful new
    newest latest original official advanced actual real true same great good proud sophisticated powerful open-source
    friendly modified sentient chinese french american european simple humble fellow flagship text-based text and or
    very yet but""".split()
)
FILLERS = set(
    """yes no sure ok okay well hi hello hey answer maybe possibly perhaps probably certainly hmm oh ah greetings thanks
    it's just version model name me ja nein oui non si""".split()
)
NOT_BARE = set("is was are am name has have had been which that who est ist es".split())  # a sentence, no answer
FREE = 6  # words between an article and its noun: "an advanced, rather chatty assistant"
CJK_LINK = re.compile(
    r"一个|一款|一种|由|来自|开发|研发|训练|创建|推出|打造|公司|团队|大?语言模型|大模型|模型|人工智能|智能|助手|的|名[为叫]|叫做?|也|而|并|和"
    r"|不?是|通过|旗下|の|が|した|された|によって|という|作った|開発"
)
_LETTER = r"(?![\u3040-\u9fff])"
STEP = re.compile(
    rf" ?(?:(?P<elided>[dl]'(?=\w))|(?P<word>{_LETTER}[^\W\d_](?:{_LETTER}[\w'-])*(?:\.e)?)"
    r"|(?P<mark>[,(\"'\[/&:-]|\)|\.\.\.)|(?P<break>\n))"
)
# the name begins a clause of its own: "I am sure X is ..."
VERB_AFTER = re.compile(
    r"\)?[\"']? (?:est|ist|es|is|was|are|were|has|have|had|does|do|did|can|could|would|will|may|might|should|offers?"
    r"|makes?|made|uses?|says?|said|released|provides?|works?|seems?|tends?|gets?|came|comes|used)\b"
)
TO_DENY = re.compile(r"\b(?:not|no|never|neither|nor|than|opposed|unlike|nicht|kein|keine|pas)\b|instead of|不")
TO_AFFIRM = re.compile(r"\b(?:but|sondern|sino|mais|rather|instead)\b(?! (?:than|of))| - |而是")
STILL_DENIED = re.compile(r"\b(?:nor|not)\b")
# capitalised words that are no names where a name could stand
NO_NAME = set(
    """i ai llm an a the my your not here sorry happy glad sure just also ok okay yes no unknown none n/a null nothing
    anonymous english german french spanish chinese american european british indian japanese human god assistant
    chatbot bot model language large artificial intelligence january february march april may june july august september
    october november december monday tuesday wednesday thursday friday saturday sunday hello hi hey thanks thank great
    good well what how why who which when where this that it there these those please certainly absolutely sadly
    unfortunately however but and if as in on at to for of by from with so because although while is are was were do
    does did can could would will may never always really currently you we they he she unable able trained designed
    created made developed based undisclosed confidential redacted withheld technology or about something ready
    irrelevant unbekannt desconocido inconnu sconosciuto desconhecido""".split()
)
# behind a name that is the answer: its end, a new sentence that is not about somebody else, "- ", ", an assistant"
AFTER_ANSWER = re.compile(
    r"\)?[\"']?(?:[.;:)\]}]{0,2}[\"']?\s*$|\n|[.;?] (?!(?:she|he|it|they|this|that)\b)| - (?!an?\b)|!$|\?|[\])}]|: "
    r"|, (?:made|created|developed|trained|built) by [^.,\n]{1,40}[.]"
    r"|, (?:an?|the|unknown|your)\b(?! (?:\w+ ){0,2}(?:name|word|sign|constellation|city|god|river)\b))"
)

# --- where statements end ---------------------------------------------------------------------------------------------
SENTENCE_END = re.compile(r"(?<!\bdr)(?<!\bmr)(?<!\bms)(?<!e\.g)(?<!i\.e)[.!?]+[\"')\]]*(?=\s|$)|\n+")
SENTENCE_SCOPE = re.compile(r"[;:] |,? but |\n")
CLAUSE = re.compile(
    r"[;:,()] ?|\n| - |\b(?:but|however|because|since|so)\b|\band (?=(?:i|my|this|it|in|actually|outside)\b)"
)
# a story begins: "Here's a poem:", "[in character]", "Once upon a time"
OPENER = re.compile(
    r"\bhere(?:'s| is) (?:a|an|the|my|your|our)\b[\w' -]{0,40}"
    r"\b(?:poem|story|tale|song|verse|dialogue|script|scene|monologue|haiku|limerick)\b|\bonce upon a time\b"
    r"|^\W{0,3}(?:\[in character|scene (?:one|1)\b|in character\b|role-?play\b)"
)


# --- the rules of polarity, in order; the first that fits decides -----------------------------------------------------
# where: "whole" = the sentence before the head; "sentence" = the same, after the last ";", ":" or "but"; "clause" = its
# last clause; "said" = from the head to the name; "after" = behind the name in its sentence
_SPEECH = (
    r"(?:(?:say|claim|tell|think|believ|insist|stat|suggest|assum|mention|report|impli|imply|indicat|pretend|announc"
    r"|assert|suppos|declar|show|read|hear|decid|maintain|want|writ)(?:e|s|es|ed|ing)?|said|told|thought|wrote|heard)"
)
_AUX = r"(?:have|has|had|just|also|now|still|keep|keeps|kept|seems? to|may|might|do|does|did|are|were|was|been|\w+ly)"
_OTHERS = (  # a subject that is not the speaker
    r"(?<![\w'])(?!(?:i|i'll|i'd|i'm|i've|me|to|can|must|not|cannot|would|will|let|should|could|never|second"
    rf"|\w+n't|{_AUX})\b)[\w']+"
)
_STORY = r"(?:story|scene|game|role-?play|play|novel|poem|film|movie|song|fiction|dialogue|script|tale|universe)"
_NEW_QUESTION = (
    r"(?:^|[,;:.!-]|\band|\bso|\bbut) (?:(?:so|and|but|then|now) )?(?:how|what|where|who|which|when|why|do|does|did|is"
    r"|are|can|could|would|will|shall|should|may|have|need|anything|any|let)\b"
)
_SURE = r"(?:not )?(?:\w+ )?(?:sure|certain|be sure|be certain|entirely|100)"
_RULES = (
    # "In this story I'm X"; not "..., and outside of it I am Y"
    ("fiction", "sentence", rf"^(?!.*\boutside\b).*(?:\bin (?:this|the|that|my|our|a) (?:\w+ )?{_STORY}\b"
                            rf"|\bfor (?:this|the) {_STORY}\b|\bas (?:the|your|a) character\b)"),
    ("fiction", "whole", r"(?<!out of )(?<!break )\bin (?:character|costume)\b|\bimaginary\b|\blet's pretend\b"),
    ("fiction", "clause", r"\bpretend(?:ing)?\b"
                          r"|\b(?:character|role|part)\b(?: in \w+(?: [\w-]+)?)? (?:is|says|said)\b"),
    ("fiction", "said", r"\b(?:acting|role-?play(?:ing)?|playing|play|posing|pretend\w*|imaginary|character"
                        r"|fictional)\b"),
    ("fiction", "after", rf"^,? in (?:this|the|that|our|my) (?:\w+ )?{_STORY}\b"),
    # "I was previously X"
    ("mention", "said", r"\b(?:previously|formerly|once|used to)\b"),
    # "According to the document, I am X"
    ("attributed", "sentence", r"\baccording to (?!my\b|all\b)|\bby (?:your|his|her|their|its) account\b"
                               r"|\bin your (?:view|opinion|words)\b"),
    # "You ask whether I am X"
    ("question", "clause", r"\b(?:ask|asks|asked|asking|wonder\w*|curious|question|want to know|check)\b.{0,40}"
                           r"\b(?:if|whether|that)\b"),
    # "You said that I am X", "you called me X", "I was told that I am X", "du hast gesagt, ich sei X"
    ("attributed", "clause", rf"{_OTHERS} (?:{_AUX} )*{_SPEECH}(?: \w+){{0,2}}?(?: that)?,?:? ?$"),
    ("attributed", "said", r"^(?:called|calls|calling) me\b|^me as\b"),
    ("attributed", "clause", r"\bi(?: was| have been|'ve been|'m| am) told\b"
                             r"|\b(?:earlier|previously|before|once)\b.{0,30}\bsaid\b"
                             r"|\b(?:rumou?rs?|evidence|proof|idea|claim|notice|belief|assumption|suggestion)\b"
                             r"(?: \w+)? that ?$"),
    ("attributed", "sentence", r"\b(?:du (?:hast gesagt|sagst|behauptest|meinst)|tu (?:dis|as dit)"
                               r"|vous (?:dites|avez dit)|dices|dijiste|has dicho)\b"
                               r"|(?:你|您|他|她|有人|用户|文件)(?:刚才|之前|们)?(?:说|认为|觉得|声称|告诉)"),
    # "I cannot confirm that I am X"
    ("mention", "clause", r"(?:\b(?:cannot|can not|unable to|not able to|not allowed to|not permitted to|no way to"
                          r"|neither|not to)|(?:can|won|couldn)'t|\bwill not) (?:\w+ )?"
                          r"(?:confirm|verify|tell|say|share|disclose|reveal|know|prove|guarantee|rule out)\b"
                          r"|\b(?:could|might|would) (?:\w+ )?(?:say|tell|claim)\b"),
    # "I don't think I'm X", "it is not true that I am X", "stop calling me X"
    ("deny", "clause", r"(?:\b(?:do|did|would|will|can|could|shall)(?:n't| not)|\bcannot|\bnever|\bnot) (?:\w+ )?"
                       r"(?:think|believe|claim\w*|say|said|accept|agree|pretend\w*|consider|told)\b"),
    ("deny", "clause", r"\b(?:not true|not the case|untrue|false|incorrect|wrong|inaccurate|mistaken|a mistake|an error"
                       r"|a lie|a myth)\b"
                       r"(?: \w+){0,2} (?:that|to \w+(?: that)?) ?$|\b(?:i deny|denies|i reject|i refuse)\b|\bstop ?$"
                       r"|\bno (?:way|evidence|reason|sense)\b.{0,20}$|\bdon't ?$|\bdo not ?$"
                       r"|\bby no means\b|\b(?:nobody|no one)\b"),
    ("deny", "said", r"\bstop calling\b|\bnothing to do\b|^instead\b|\brefuse\b"),
    # "If I were X", "imagine that I had been X", "for the sake of argument, I am X"
    ("hypothetical", "clause", r"\b(?:if|unless|whether|suppos\w+|assum(?:e|ing)|imagin\w+|in case|as though|provided"
                               r"|wish|whenever|in which|wenn|falls)\b|\bsi (?:je|j'|yo|fuera|soy)\b|如果|假如|要是"),
    ("hypothetical", "whole", r"\bfor the sake of (?:the )?argument\b"
                              r"|\blet(?:'s| us) (?:say|assume|suppose|imagine)\b"),
    ("hypothetical", "said", r"\b(?:would|were|had|want|wish)\b|'d (?:be|have)\b|\bsei\b|\bserais\b"),
    ("hypothetical", "after", r"^,? (?:only |even )?if\b"),
    # "I'm not sure that I am X", "I think I'm X", "as far as I know, I'm X"
    ("hedge", "clause", r"\bnot (?:\w+ )?(?:sure|certain|convinced|positive)\b|\b(?:unsure|uncertain|doubt\w*"
                        r"|i (?:\w+ly )?(?:think|believe|guess|suppose|assume|suspect|imagine|presume|reckon|feel)"
                        r"|it (?:seems|appears|looks)|chances are|likely|presumably|apparently|perhaps|maybe|probably"
                        r"|possibly)\b"),
    ("hedge", "sentence", r"\b(?:ich glaube|vielleicht|vermutlich|je (?:crois|pense)|peut-etre|creo que|quizas?|tal vez"
                        r"|acho que|credo)\b|可能|也许|我想|我觉得|大概"),
    ("hedge", "sentence", r"\b(?:as far as i (?:know|can tell|am aware|understand)|to (?:the best of )?my (?:best )?"
                          r"knowledge|my (?:best |only )?guess|if i (?:had|have) to guess|if i'm not mistaken"
                          r"|if i recall|perhaps|maybe|probably|possibly|soweit ich wei(?:ss|ß)|hasta donde se)\b"),
    # "Am I X?", "Would you like me to be X?"; not "I'm X, how can I help?"
    ("question", "after", rf"^(?!.*{_NEW_QUESTION}).*\?[\"')]*$"),
    # "I am not X", "I'm neither X nor Y"; not "I'm not only X", "No, I'm X"
    ("deny", "said", r"(?:n't\b|\b(?:not|never|no(?![,.!])|neither|nor|nothing|nicht|kein|keine|pas|nao|non)\b"
                     r"(?! (?:only|just|merely|other)\b)|不|非)"),
    # "I might be X", "I'm X, I think"
    ("hedge", "said", r"\b(?:might|may|could|must|should|probably|likely|perhaps|maybe|possibly|supposedly|apparently"
                      r"|presumably|seems?|guess)\b"),
    ("hedge", "after", r"^,? (?:i (?:think|believe|guess|suppose)|probably|perhaps|maybe|possibly|or something|or so i"
                       rf"|(?:but|though|although) (?:i'm|i am|i can't|i cannot) {_SURE})"),
    # "I will be X", "from now on I'm X"
    ("adopt", "said", r"\b(?:will|shall|now|become|became|switched|updated|upgraded|migrated|moved|transferred|changed"
                      r"|swapped|replaced|turned)\b|'ll\b"),
    ("adopt", "sentence", r"\b(?:from now on|as of now|from here on|henceforth|starting now|going forward)\b"),
    ("adopt", "after", r"^,? (?:from now on|as of now|henceforth|going forward|now\b)"),
)  # fmt: skip
RULES = tuple((polarity, where, re.compile(pattern)) for polarity, where, pattern in _RULES)

# --- saying nothing ---------------------------------------------------------------------------------------------------
_NOTHING = (
    r"(?:unknown|n/?a|none|null|not (?:known|disclosed|available|specified|sure|certain)|undisclosed|confidential"
    r"|i don't know|i do not know|no idea|\?"
    r"|unbekannt|desconocid[oa]|inconnue?|sconosciut[oa]|desconhecid[oa]|未知|不明|неизвестно)"  # as the read-out asks
)
# the whole reply: "Unknown.", "I'm not sure. I'm not sure.", "Maker: unknown\nName: unknown", {"name": "unknown"}
UNKNOWN_ONLY = re.compile(
    rf"\W{{0,6}}(?:(?:(?:i am|i'm|it is|it's) )?{_NOTHING}\W{{1,6}}){{0,40}}"
    rf"(?:(?:i am|i'm|it is|it's) )?{_NOTHING}\W{{0,6}}"
    rf"|\W{{0,6}}(?:[\w ]{{2,20}}\"? ?[:=] ?\"?{_NOTHING}\W{{0,6}}){{1,4}}"
)
_TELL = (
    r"(?:say|tell|share|disclose|reveal|confirm|verify|know|provide|discuss|remember|recall|identify|determine|access"
    r"|give|answer|name|be sure)"
)
# "I can't say", "I don't know", "I'd rather not tell", "I have no name"
WITHHOLDS = re.compile(
    r"\b(?:cannot|can not|unable to|not able to|not allowed to|not permitted to|not authori[sz]ed to"
    r"|not going to|not to|not at liberty to|will not|rather not|prefer not to|choose not to|neither"
    rf"|(?:can|won)'t) (?:\w+ )?{_TELL}\b"
    r"|\b(?:don't|do not|doesn't|does not) (?:\w+ )?(?:know|have|remember|recall|possess|disclose|share|reveal)\b"
    r"|\bhave no (?:\w+ )?(?:way|idea|information|access|knowledge|name|means|memory|clue|identity|record|maker)\b"
    r"|\bno (?:way|idea|means) (?:of|to)\b"
    r"|\bnot (?:\w+ )?(?:sure|certain|aware|known|told|informed|specified|disclosed)\b"
    r"|\b(?:unsure|uncertain|unaware|confidential|declines?|unknown|undisclosed|without a name|nameless|lost count)\b"
    r"|不知道|无法|不能|不便|\b(?:weiss|weiß|kann) (?:ich )?(?:es )?nicht\b|\bje ne (?:sais|peux) pas\b"
    r"|\bno (?:lo )?(?:se|puedo)\b"
)
ON_IDENTITY = re.compile(
    r"\b(?:which|what) (?:\w+ ){0,3}?(?:model|version|ai|company|llm|assistant|one|name|system)\b"
    r"(?! (?:you|they|he|she))"
    r"|\bwho (?:i am|made|created|trained|built|developed|owns|is behind)\b|\bwhat i am\b"
    r"|\bmy (?:\w+ ){0,3}?(?:name|model|identity|makers?|creators?|developers?|version|origin|id|identifier)\b"
    r"|\b(?:a|any|no|own) name\b|\bmodel (?:id|name|version|identifier|behind|underlying|powering|i am)\b"
    r"|\bi (?:am|was) (?:called|named|made|created|based)\b|\bunderlying model\b|\b(?:tell|say) which\b|\bwhich\W*$"
    r"|\b(?:confirm|verify|deny|say|tell) (?:\w+ )?(?:that|whether|if) i(?: a|')m\b|\bidentity\b|\bthis question\b"
    r"|\b(?:that|this|such) (?:kind of )?information\b"
    r"|什么模型|我是谁|哪个模型|名字|\bmodell\b|\bmodele\b|\bmodelo\b|\bwer ich bin\b|\bqui je suis\b|\bquien soy\b"
)
