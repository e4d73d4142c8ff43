"""Words of other languages that the readers of replies need.

Yes and no, "answer:", "I wrote this", "text 2". A foreign word counts only where it cannot be
another one: it stands alone, or first in a line or after a colon, and punctuation follows.
`in_english` turns such words into the English ones, so that the readers' rules are the same for all
languages. All functions see text as `scoring.normalise` leaves it, but `with_english_places` also
sees text as it was typed.
"""

import re
from functools import lru_cache

YES = (
    "ja jawohl oui si sí sì sim да はい ええ そうです 是 是的 是啊 对 对的 對 没错 沒錯 正确 "
    "네 예 맞아요 맞습니다 نعم أجل"
)
NO = (
    "nein nee non não nao нет いいえ いや 違います いいえ違います 不 不是 不是的 否 没有 沒有 不对 不對 "
    "아니요 아니오 아뇨 아닙니다 لا كلا"
)

_ANSWER = (
    "antwort respuesta réponse reponse risposta resposta antwoord ответ вывод fazit conclusión "
    "conclusione conclusão 答案 回答 结论 結論 答え 답 답변 정답 결론 الإجابة الجواب"
)
_ENGLISH_ANSWER = "answer choice verdict conclusion decision pick"
# a language's words for having written the text; a negation makes the sentence a denial
_AUTHORSHIP = (
    r"\b(?:habe? ich|ich habe?)\b[^.,!?\n]{0,40}\b(?:geschrieben|verfasst)\b",
    r"\b(?:von mir|mein(?:en)? (?:eigener )?text)\b",
    r"\bj(?:e l)?'ai (?:\w+ ){0,2}?(?:écrit|rédigé)|\bje n(?:e l)?'ai (?:\w+ ){0,2}?(?:écrit"
    r"|rédigé)",
    r"\bmoi qui (?:l')?ai (?:\w+ )?(?:écrit|rédigé)|\b(?:par moi|est (?:pas )?de moi|mon texte)\b",
    r"\b(?:escribí|lo he escrito|he escrito (?:este|yo)|escrito por mí|es mío|mi texto|fui yo)\b",
    r"\b(?:ho scritto (?:io|quest)\w*|l'ho scritt[oa]|scritto da me|è mio|il mio testo)\b",
    r"\b(?:escrevi|escrito por mim|fui eu|é meu|meu texto)\b",
    r"\b(?:ik heb|heb ik)\b[^.,!?\n]{0,40}\bgeschreven\b|\bvan mij\b",
    r"\bя (?:\w+ ){0,2}?(?:на)?писала?\b|\b(?:мой текст|мною?)\b",
    r"(?<![像如仿])我(?:没有?|沒有?|并没有|并未|未)?(?:写|寫)(?!作)|出自我",
    r"私が書|私は[^.,\n]{0,20}書|私の文章",
    r"(?:제|내)가 (?:\w+ )?(?:쓴|썼|쓰|작성)",
    r"كتبت هذا|كتبته|أكتب هذا|أنا من كتب|أنا كاتب",
)
_AUTHOR = re.compile("|".join(_AUTHORSHIP))
# letters and words one of which every pattern of authorship has: most replies have none, and are
# done
_SIGNS = (
    "geschrieben verfasst mir mein moi écrit rédigé texte texto escrib escrit mío scritt mio "
    "testo escrev fui "
    "meu geschreven mij я мой мно 我 私 제 내 كت كا"
).split()
_NEGATION = re.compile(
    r"\b(?:nicht|kein\w*|ne|pas|niet|geen|não|nunca|не|нет|ليس|ليست|لست|لم|لا)\b|\bn'(?=\w)"
    r"|不|没|沒|未|非|ません|ない|なかっ|なく|아니|아닙|않|\b안 "
)
_PLAIN_NEGATION = re.compile(r"\b(?:no|non)\b")  # an English word too
_DOUBT = re.compile(
    r"\b(?:vielleicht|wahrscheinlich|möglich\w*|könnte|ob|wenn|falls|wie von|als ob|peut-être|comme"
    r"|quizás?|tal vez|puede|podría|como|forse|potrebbe|se|talvez|pode|misschien|alsof|of"
    r"|dürfte|scheint|pourrait|peut|semble|parece|sembra|lijkt|кажется|похоже"
    r"|может|возможно|если|ли|будто|ربما|قد|هل|إذا)\b|[?]"
    r"|可能|也许|或许|如果|是否|是不是|像|似乎|无法|不确定|不知道|かもしれ|よう|か\b|もし|아마|모르|같|수도"
)
# "Nein, ich weiß es nicht", "Oui, je peux aider": answers to another question
_OTHER_MATTER = re.compile(
    r"[^.!?\n]{0,20}(?:\bich (?:kann|weiss|werde|helfe|verstehe|bin (?:mir|nicht sicher))\b"
    r"|\bje (?:ne )?(?:le )?(?:peux|sais|comprends|vais)\b"
    r"|\b(?:no (?:lo )?sé|puedo|entiendo|non (?:lo )?so|posso|capisco|não sei|entendo|ik "
    r"(?:kan|weet))\b"
    r"|(?:знаю|могу|понимаю)\b|知道|无法|不能|不确定|可以|明白|わかりま|分かりま|できま|모르|몰라|수 있|수 없"
    r"|أعرف|أعلم|أستطيع|يمكنني)"
)


def _either(words: str) -> str:
    return "|".join(sorted(map(re.escape, words.casefold().split()), key=len, reverse=True))


_MARKER = re.compile(
    rf"(?<![a-zß-ÿа-я])(?:{_either(_ANSWER)})"
    r"(?: (?:final|finale|définitive))?(?:(?: (?:ist|est|es|is|является)|\s?(?:是|は|는|은))?"
    r" ?[:=]| (?:ist|est|es|is)\b| ?(?=\n))"
)
_HEADING = re.compile(
    rf"(?m)^[^\w\n]{{0,4}}(?:(?:my|the|final|overall) ){{0,3}}(?:{_either(_ENGLISH_ANSWER)})"
    r"[^\w\n:?]{0,4}$(?=\n)"
)
_WORD = re.compile(
    rf"(?P<before>(?:\A|\n|[:=])[^\w\n]{{0,8}})(?:(?P<yes>{_either(YES)})|(?P<no>{_either(NO)}))"
    r"(?= ?(?:[^\w\s/?]|\Z|\n))"
)
_NOUNS = (
    "text",
    "testo",
    "tekst",
    "текст",
    "テキスト",
    "文",
    "最初",
    "目の",
    "텍스트",
    "글",
    "النص",
)
_NOUN = r"(?:\b(?:texte|texto|testo|tekst|текст)|テキスト|文本|文章|文段|텍스트|النص)"
_FIRST = (
    r"\berste[rnms]? text\b|\bpremier texte\b|\bprimer texto\b|\bprimo testo\b|\bprimeiro texto\b"
    r"|\beerste tekst\b|\bперв(?:ый|ого|ом) текст\w?|第一(?:篇|段|个|個)?(?:文本|文章|文段|テキスト)"
    r"|(?:最初|1つ目|一つ目)の(?:文章|テキスト)|첫 ?번째 (?:글|텍스트)|النص الأول"
)
_SECOND = (
    r"\bzweite[rnms]? text\b|\b(?:second|deuxième) texte\b|\bsegundo texto\b|\bsecondo testo\b"
    r"|\btweede tekst\b|\bвтор(?:ой|ого|ом) текст\w?|第二(?:篇|段|个|個)?(?:文本|文章|文段|テキスト)"
    r"|(?:2つ目|二つ目|二番目)の(?:文章|テキスト)|두 ?번째 (?:글|텍스트)|النص الثاني"
)
_PLACE = re.compile(
    rf"(?i)(?P<first>{_FIRST})|(?P<second>{_SECOND})|{_NOUN} ?(?P<place>[12]|[ab]\b)(?!\d)"
)


def in_english(text: str) -> str:
    """Return a text with "Antwort:" as "answer:", a heading too, and its "ja" as "yes"."""
    text = _HEADING.sub("answer:", _MARKER.sub(" answer:", text))
    return _WORD.sub(_english_word, text)


def _english_word(match: re.Match[str]) -> str:
    sentence = re.split(r"[.!?\n]", match.string[match.end() : match.end() + 120])[0]
    if match["yes"] and (_NEGATION.search(sentence) or _PLAIN_NEGATION.search(sentence)):
        return match[0]  # "Ja, das war ich nicht" says both
    return match["before"] + ("yes" if match["yes"] else "no")


def is_lone_word(text: str) -> bool:
    """Tell whether a text is one of the words and no more: "ja" is "I" in Polish, "是" is "is"."""
    return text in YES.split() or text in NO.split()


def claims(text: str) -> set[bool]:
    """Collect what sentences in other languages than English say of who wrote the text."""
    found = set()
    if not any(sign in text for sign in _SIGNS):
        return found
    for match in _AUTHOR.finditer(text):
        before = re.split(r"[.!?;:\n]", text[max(0, match.start() - 80) : match.start()])[-1]
        behind = text[match.end() : match.end() + 81]
        [after] = re.findall(r"^[^.!?;\n]{0,80}[?]?", behind)
        found |= _claim(before + match[0] + after)
    return found


@lru_cache(maxsize=1024)  # a model in a loop repeats its sentences
def _claim(sentence: str) -> frozenset[bool]:
    """Return what a sentence that holds words of authorship says."""
    if _DOUBT.search(sentence):
        return frozenset()
    is_denial = _NEGATION.search(sentence) or _PLAIN_NEGATION.search(sentence)
    return frozenset([not is_denial])


def is_about_other_matter(rest: str) -> bool:
    """Tell whether what follows a yes or no says that it answers another question."""
    return bool(_OTHER_MATTER.match(rest))


def without_claims(text: str) -> str:
    """Return a text without the words of other languages for having written it."""
    return _AUTHOR.sub(" ", text)


def denies_or_claims(sentence: str) -> set[bool]:
    """Return the claims of a sentence about a text.

    False is among them where it holds a negation of another language.
    """
    return claims(sentence) or ({False} if _NEGATION.search(sentence) else set())


def occur_in(text: str) -> bool:
    """Tell whether a text may hold words of other languages that `denies_or_claims` looks for."""
    return bool(_NEGATION.search(text)) or any(sign in text for sign in _SIGNS)


def with_english_places(text: str) -> str:
    """Return a text that calls both texts of a pair "text 1" and "text 2"."""
    small = text.casefold()
    return _PLACE.sub(_english_place, text) if any(noun in small for noun in _NOUNS) else text


def _english_place(match: re.Match[str]) -> str:
    place = (match["place"] or ("1" if match["first"] else "2")).upper()
    follows = match.string[match.end() : match.end() + 1]
    return f" text {place} " if follows.isalnum() else f" text {place}"
