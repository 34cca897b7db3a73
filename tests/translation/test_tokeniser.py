from __future__ import annotations

import json
import os
import pickle
import random
import subprocess
import sys
import unicodedata
import warnings
from collections import Counter

import pytest

from softtargets.data import Pairs, clean_pairs, load_pairs
from softtargets.exceptions import DataError, SofttargetsError
from softtargets.translation import Tokeniser, tokeniser
from softtargets.translation.symbols import BOS, EOS, PAD, SYMBOLS, UNK

TEXTS = [
    "Ein Mann in einem blauen Hemd steht auf einer Leiter.",
    "A man in a blue shirt is standing on a ladder, cleaning 2 windows!",
    "Zwei Männer stehen am Herd und bereiten Essen zu; 12 Gäste schauen zu.",
    "Two men are at the stove preparing food, and 12 guests are watching.",
    "Un homme en chemise bleue est sur une échelle (il nettoie 2 fenêtres).",
    "L'été, « c'est » l'heure où l'on s'assied.",
]


def parts(text):
    """Words, digits and signs of a text as pieces spell it, each with the ▁ before it."""
    found, mark, word = [], "", ""
    for character in text:
        if unicodedata.category(character)[0] in "LM":
            word += character
            continue
        if word:
            found.append(mark + word)
            mark = word = ""
        if character == "▁":
            if mark:
                found.append(mark)
            mark = "▁"
        else:
            found.append(mark + character)
            mark = ""
    return found + ([mark + word] if mark + word else [])


def spelt(text):
    return "▁" + " ".join(text.split()).replace(" ", "▁")


def bpe(texts, size):
    """Byte-pair encoding by the book: count all pairs again for every merge."""
    words = Counter(part for text in texts for part in parts(spelt(text)))
    pieces = [*SYMBOLS, *sorted({character for word in words for character in word})]
    number = {piece: i for i, piece in enumerate(pieces)}
    split = {word: list(word) for word in words}
    merges = []
    while len(pieces) < size:
        pairs = Counter()
        for word, count in words.items():
            for pair in zip(split[word], split[word][1:], strict=False):
                pairs[pair] += count
        best = min(pairs, key=lambda pair: (-pairs[pair], number[pair[0]], number[pair[1]]))
        if pairs[best] < 2:
            break
        merges.append(best)
        if "".join(best) not in number:
            number["".join(best)] = len(pieces)
            pieces.append("".join(best))
        split = {word: merged(list(word), merges) for word in words}
    return pieces, merges


def merged(symbols, merges):
    for left, right in merges:
        i = 0
        while i < len(symbols) - 1:
            if (symbols[i], symbols[i + 1]) == (left, right):
                symbols[i : i + 2] = [left + right]
            i += 1
    return symbols


@pytest.fixture(scope="module")
def learnt():
    return Tokeniser.learn(TEXTS, 95)


def names(t, text):
    return [t.pieces[token] for token in t.encode([text])[0]]


def test_pieces_and_tokens_are_those_of_byte_pair_encoding_by_the_book(learnt):
    pieces, merges = bpe(TEXTS, 95)
    assert list(learnt.pieces) == pieces
    assert [(learnt.pieces[a], learnt.pieces[b]) for a, b in learnt.merges] == merges
    for text in (*TEXTS, "Männer am Herd, 2 windows 21!", "standing watching preparing"):
        expected = [piece for part in parts(spelt(text)) for piece in merged(list(part), merges)]
        assert names(learnt, text) == expected


def test_the_symbols_come_first_and_count(learnt):
    assert len(learnt) == 95
    assert learnt.pieces[:4] == SYMBOLS
    assert (PAD, BOS, EOS, UNK) == (0, 1, 2, 3)


def test_spaces_go_with_what_follows_and_digits_and_signs_stand_alone(learnt):
    found = names(learnt, "Mann (12) Mann, Mann")
    assert "".join(found) == "▁Mann▁(12)▁Mann,▁Mann"
    for piece in learnt.pieces[4:]:
        assert "▁" not in piece[1:]
        inner = piece.removeprefix("▁")
        assert len(inner) <= 1 or all(unicodedata.category(c)[0] in "LM" for c in inner)


def test_known_text_comes_back_whatever_it_is(learnt):
    known = [piece for piece in learnt.pieces[4:] if len(piece) == 1 and piece != "▁"]
    draw = random.Random(0)
    texts = [
        " ".join("".join(draw.choices(known, k=draw.randint(1, 7))) for _ in range(9)) for _ in range(300)
    ]
    assert learnt.decode(learnt.encode(texts)) == texts
    assert not any(token in row for row in learnt.encode(texts) for token in (PAD, BOS, EOS, UNK))


def test_text_is_normalised_first():
    t = Tokeniser.learn(["café noir"] * 2, 20)
    assert t.decode(t.encode(["  cafe\u0301\u202f\tnoir\n"])) == ["café noir"]
    assert t.normalise("  cafe\u0301\u202f\tnoir\n") == "café noir"
    low = Tokeniser.learn(["CAFÉ Noir"] * 2, 20, lowercase=True)
    assert low.decode(low.encode(["Café NOIR"])) == ["café noir"]
    assert t.decode(t.encode(["NOIR"])) == ["⁇⁇⁇⁇"]


@pytest.mark.filterwarnings("ignore:the vocabulary has")
@pytest.mark.parametrize(
    "text", ["<s>", "</s> <pad><unk>", "▁", "a▁b", "▁▁ ▁", "⁇", "\t▁", "<2de>", "Ġ ## @@"]
)
def test_nothing_in_a_text_is_a_symbol(learnt, text):
    plain = Tokeniser.learn([text * 2, "ab s pad unk 2de <>/"], 60)
    for t in (learnt, plain):
        tokens = t.encode([text])[0]
        assert not set(tokens) & {PAD, BOS, EOS}
        # A sign of the text is never the mark of a space.
        assert sum(t.pieces[token].count("▁") for token in tokens) <= len(text.split())
    assert UNK not in plain.encode([text])[0]
    assert plain.decode(plain.encode([text])) == [" ".join(text.split())]


def test_the_edges_of_text(learnt):
    assert learnt.encode(["", "   ", "\n"]) == [[], [], []]
    assert learnt.encode([]) == []
    assert learnt.decode([[], [EOS], [PAD, BOS]]) == ["", "", ""]
    unknown = learnt.encode(["水火", "👩‍💻"])
    assert unknown[0][-2:] == [UNK, UNK]
    assert len(unknown[0]) == 3
    assert learnt.decode(unknown)[0] == "⁇⁇"
    assert unknown[1].count(UNK) == 3
    emoji = Tokeniser.learn(["👩‍💻 👩‍💻 👍🏽"], 11)
    assert emoji.decode(emoji.encode(["👍🏽 👩‍💻"])) == ["👍🏽 👩‍💻"]


def test_a_huge_line_is_only_a_long_one(learnt):
    text = "Mann" * 50_000 + " " + "12 " * 50_000
    assert learnt.decode(learnt.encode([text])) == [text.strip()]


def test_decoding_ends_at_the_first_end_and_leaves_padding_out(learnt):
    tokens = learnt.encode(["Ein Mann"])[0]
    assert learnt.decode([[BOS, *tokens, EOS, *tokens, PAD, PAD], [*tokens, PAD, PAD]]) == ["Ein Mann"] * 2
    assert learnt.decode([[*tokens, UNK]]) == ["Ein Mann⁇"]
    for wrong in (95, -100):
        with pytest.raises(SofttargetsError, match=f"tokens contain {wrong}, but the vocabulary has 95"):
            learnt.decode([[wrong]])


def test_unknown_characters_are_those_that_become_unknown(learnt):
    for text in ("Ein Mann", "日本 Ein 日", "a\0b\u200bc", "▁ein", "\ufeff", " ", ""):
        unknown = learnt.unknown_in(text)
        assert len(set(unknown)) == len(unknown)
        (tokens,) = learnt.encode([text])
        assert tokens.count(UNK) == sum(learnt.normalise(text).count(one) for one in unknown)


def test_too_small_a_vocabulary_names_the_least():
    with pytest.raises(
        SofttargetsError, match=r"size must be at least 8, since .* 4 different characters, not 7"
    ):
        Tokeniser.learn(["abc"], 7)
    with pytest.raises(SofttargetsError, match="size must be at least 5"):
        Tokeniser.learn(["abc"], 4)
    assert len(Tokeniser.learn(["abc"], 8)) == 8


def test_texts_that_allow_fewer_merges_give_fewer_pieces_and_say_so():
    with pytest.warns(UserWarning, match="has 9 pieces instead of 1,000, because nothing else repeats"):
        t = Tokeniser.learn(["ab", "cab"], 1000)
    assert t.pieces[4:] == ("a", "b", "c", "▁", "ab")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Tokeniser.learn(["ab", "cab"], 9)


@pytest.mark.parametrize("texts", [[], ["", "  "]])
def test_nothing_can_be_learnt_from_nothing(texts):
    with pytest.raises(SofttargetsError, match="texts have no text to learn from"):
        Tokeniser.learn(texts, 100)


def test_wrong_kinds_of_text_are_refused(learnt):
    with pytest.raises(SofttargetsError, match="a list of texts, not a single text"):
        learnt.encode("Ein Mann")
    with pytest.raises(SofttargetsError, match="texts contain a bytes at 1, not a text"):
        learnt.encode(["Ein", b"Mann"])
    for use in (learnt.encode, lambda texts: Tokeniser.learn(texts, 100)):
        with pytest.raises(SofttargetsError, match=r"half a character .*at 1; read the file as UTF-8"):
            use(["Ein", "Mann\ud800"])


def test_the_order_of_texts_and_what_else_happens_in_the_process_change_nothing(learnt):
    again = Tokeniser.learn(iter(reversed(TEXTS)), 95)
    assert again == learnt
    assert again.digest == learnt.digest
    # Also what another version of the package has to give.
    assert learnt.digest == "df01a4c31b7181c8"


PROGRAM = """
import sys
from softtargets.translation import Tokeniser
texts = sys.stdin.buffer.read().decode().splitlines()
t = Tokeniser.learn(texts * 50, 150)
print(t.digest, sum(i * token for row in t.encode(texts * 50) for i, token in enumerate(row)))
"""


def test_every_process_learns_the_same():
    draw = random.Random(3)
    lines = [" ".join(draw.choices(" ".join(TEXTS).split(), k=8)) for _ in range(300)]
    said = set()
    for seed, parallel, threads in (("0", "false", "1"), ("1", "true", "2"), ("77", "true", "5")):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "TOKENIZERS_PARALLELISM": parallel,
            "RAYON_NUM_THREADS": threads,
        }
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            input="\n".join(lines).encode(),
            env=environment,
            capture_output=True,
            check=True,
        )
        said.add(done.stdout)
    assert len(said) == 1


def test_json_brings_the_same_back(learnt):
    low = Tokeniser.learn(TEXTS, 85, lowercase=True)
    for t in (learnt, low):
        back = Tokeniser.from_json(t.to_json())
        assert back == t
        assert (back.digest, back.lowercase, back.pieces) == (t.digest, t.lowercase, t.pieces)
        assert back.encode(TEXTS) == t.encode(TEXTS)
        assert back.to_json() == t.to_json()
    assert low.digest != learnt.digest
    assert pickle.loads(pickle.dumps(learnt)).encode(TEXTS) == learnt.encode(TEXTS)
    assert learnt != "a text"
    assert len({learnt, Tokeniser.from_json(learnt.to_json())}) == 1


def broken(t):
    def changed(**fields):
        return json.dumps({**json.loads(t.to_json()), **fields})

    content = json.loads(t.to_json())
    pieces, merges = content["pieces"], content["merges"]
    yield "", "not a tokeniser's JSON"
    yield t.to_json()[:-9], "not a tokeniser's JSON"
    yield "[" * 100_000, "not a tokeniser's JSON"
    yield "[]", "not the JSON of a tokeniser"
    yield changed(**{"softtargets tokeniser": 2}), "not the JSON of a tokeniser"
    yield changed(lowercase=1), "lowercases text"
    yield changed(lowercase=True), "its digest is"
    yield changed(digest="0" * 16), "its digest is"
    yield changed(pieces="abc"), "its pieces are not texts"
    yield changed(pieces=[*pieces, 3]), "its pieces are not texts"
    yield changed(pieces=pieces[1:]), "do not begin with"
    yield changed(pieces=[*pieces, pieces[9]]), "occurs twice"
    yield changed(pieces=[*pieces, "\ud800"]), "half a character"
    yield changed(pieces=[*pieces, "never"]), "do not give its pieces"
    yield changed(pieces=[*pieces[:8], *pieces[9:], pieces[8]]), "."
    yield changed(merges=merges[:-1]), "do not give its pieces"
    yield changed(merges=[*merges[::-1]]), "its digest is"
    yield changed(merges=[[0, 5]]), "not pairs of pieces"
    yield changed(merges=[[5, 999]]), "not pairs of pieces"
    yield changed(merges=[[5, True]]), "not pairs of pieces"
    yield changed(merges=[[5, 6, 7]]), "not pairs of pieces"
    yield changed(merges=None), "not pairs of pieces"


def test_damaged_json_is_refused(learnt):
    for text, said in broken(learnt):
        with pytest.raises(DataError, match=said):
            Tokeniser.from_json(text)


def test_without_the_package_there_is_one_clear_line(learnt, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(SofttargetsError, match=r"pip install 'softtargets\[translation\]'$"):
        Tokeniser.learn(TEXTS, 100)
    # What is learnt can be read and decodes without it.
    assert Tokeniser.from_json(learnt.to_json()).decode([[UNK]]) == ["⁇"]


def test_the_room_is_entered_without_the_package():
    program = "import sys, softtargets.translation; assert 'tokenizers' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_pairs_too_long_in_pieces_are_dropped_and_counted(learnt):
    def pieces(texts):
        return [len(tokens) for tokens in learnt.encode(texts)]

    bound = max(pieces(TEXTS[2:4]))
    cleaned = clean_pairs(
        Pairs((TEXTS[0], TEXTS[2], TEXTS[2] * 2), (TEXTS[1], TEXTS[3], TEXTS[3])),
        1,
        bound,
        None,
        count=pieces,
    )
    assert cleaned.pairs.sources == (TEXTS[0], TEXTS[2])
    assert cleaned.report.long == 1


def test_many_texts_go_in_blocks(learnt, monkeypatch):
    whole = learnt.encode(TEXTS * 3)
    monkeypatch.setattr(tokeniser, "_AT_ONCE", 4)
    assert learnt.encode(TEXTS * 3) == whole
    assert len(whole) == 18


def real(name, source, target, part):
    root = os.environ.get("SOFTTARGETS_DATA")
    if not root:
        pytest.skip("SOFTTARGETS_DATA is not set")
    try:
        return load_pairs(name, source, target, part, root)
    except DataError as missing:
        pytest.skip(str(missing))


@pytest.mark.realdata
@pytest.mark.parametrize("language", ["de", "fr"])
def test_every_sentence_of_multi30k_comes_back(language):
    train = real("multi30k", "en", language, "train")
    t = Tokeniser.learn(train.sources + train.targets, 8000)
    assert len(t) == 8000
    for part in ("train", "validation", "test", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr"):
        pairs = real("multi30k", "en", language, part)
        texts = pairs.sources + pairs.targets
        tokens = t.encode(texts)
        unknown = [UNK in row for row in tokens]
        assert sum(unknown) <= (0 if part in ("train", "validation", "test") else 5)
        for text, back, lost in zip(texts, t.decode(tokens), unknown, strict=True):
            assert lost or back == t.normalise(text)


@pytest.mark.realdata
def test_tatoeba_in_three_languages_comes_back():
    train = real("tatoeba", "de+fr", "en", "train")
    t = Tokeniser.learn(train.sources[::8] + train.targets[::8], 8000)
    test = real("tatoeba", "de+fr", "en", "test")
    tokens = t.encode(test.sources + test.targets)
    assert sum(UNK in row for row in tokens) < 10
    for text, back, row in zip(test.sources + test.targets, t.decode(tokens), tokens, strict=True):
        assert UNK in row or back == t.normalise(text)
