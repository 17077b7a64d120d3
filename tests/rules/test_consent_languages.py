"""Labels of consent layers in every language Nova reads, and letters that only look like others."""

import json
import unicodedata
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.browser.page import packed
from nova_mcp.core.page.consent_words import said_by
from nova_mcp.core.page.labels import words_of
from nova_mcp.core.page.look_alikes import as_seen

RAW = json.loads(files("nova_mcp.core.page").joinpath("data/consent_words.json").read_text("utf-8"))
LANGUAGES = tuple(RAW["consent_accept"])

# What real layers say: accept, reject, only the necessary, without accepting, manage, close.
LABELS = {
    "it": (
        "Accetta tutti i cookie",
        "Rifiuta tutto",
        "Accetta solo i cookie necessari",
        "Continua senza accettare",
        "Gestisci preferenze",
        "Chiudi",
    ),
    "pt": (
        "Aceitar todos os cookies",
        "Rejeitar todos",
        "Apenas cookies necessários",
        "Continuar sem aceitar",
        "Gerenciar cookies",
        "Fechar",
    ),
    "nl": (
        "Alle cookies accepteren",
        "Alles weigeren",
        "Alleen noodzakelijke cookies",
        "Doorgaan zonder te accepteren",
        "Voorkeuren beheren",
        "Sluiten",
    ),
    "sv": (
        "Godkänn alla cookies",
        "Avvisa alla",
        "Endast nödvändiga cookies",
        "Fortsätt utan att godkänna",
        "Hantera inställningar",
        "Stäng",
    ),
    "da": (
        "Tillad alle cookies",
        "Afvis alle",
        "Kun nødvendige cookies",
        "Fortsæt uden at acceptere",
        "Tilpas indstillinger",
        "Luk",
    ),
    "no": (
        "Godta alle informasjonskapsler",
        "Avvis alle",
        "Bare nødvendige informasjonskapsler",
        "Fortsett uten å godta",
        "Tilpass",
        "Lukk",
    ),
    "fi": (
        "Hyväksy kaikki evästeet",
        "Hylkää kaikki",
        "Vain välttämättömät evästeet",
        "Jatka hyväksymättä",
        "Muokkaa asetuksia",
        "Sulje",
    ),
    "pl": (
        "Zaakceptuj wszystkie",
        "Odrzuć wszystkie",
        "Tylko niezbędne pliki cookie",
        "Kontynuuj bez akceptacji",
        "Zarządzaj ustawieniami",
        "Zamknij",
    ),
    "cs": (
        "Přijmout vše",
        "Odmítnout vše",
        "Pouze nezbytné cookies",
        "Pokračovat bez souhlasu",
        "Nastavení cookies",
        "Zavřít",
    ),
    "hu": (
        "Összes elfogadása",
        "Az összes elutasítása",
        "Csak a szükséges sütik",
        "Folytatás elfogadás nélkül",
        "Beállítások kezelése",
        "Bezárás",
    ),
    "ro": (
        "Acceptă toate",
        "Respinge toate cookie-urile",
        "Doar cele strict necesare",
        "Continuă fără a accepta",
        "Gestionează opțiunile",
        "Închide",
    ),
    "el": (
        "Αποδοχή όλων",
        "Απόρριψη όλων",
        "Μόνο τα απαραίτητα cookies",
        "Συνέχεια χωρίς αποδοχή",
        "Ρυθμίσεις cookies",
        "Κλείσιμο",
    ),
    "tr": (
        "Tümünü kabul et",
        "Tüm çerezleri reddet",
        "Yalnızca gerekli çerezler",
        "Kabul etmeden devam et",
        "Çerez ayarları",
        "Kapat",
    ),
    "ru": (
        "Принять все",
        "Отклонить все",
        "Только необходимые файлы cookie",
        "Продолжить без согласия",
        "Настройки cookie",
        "Закрыть",
    ),
    "uk": (
        "Прийняти всі",
        "Відхилити всі",
        "Лише необхідні файли cookie",
        "Продовжити без згоди",
        "Налаштувати",
        "Закрити",
    ),
    "ja": (
        "すべてのCookieを受け入れる",
        "すべて拒否する",
        "必要なCookieのみを許可する",
        "同意せずに続行",
        "設定を管理",
        "閉じる",
    ),
    "zh-hans": ("接受所有 Cookie", "全部拒绝", "仅接受必要的 Cookie", "不接受并继续", "管理选项", "关闭"),
    "zh-hant": ("接受所有 Cookie", "全部拒絕", "僅接受必要的 Cookie", "不接受並繼續", "管理選項", "關閉"),
    "ko": ("모든 쿠키 허용", "모두 거부", "필수 쿠키만 허용", "동의하지 않고 계속하기", "쿠키 설정", "닫기"),
    "ar": (
        "قبول جميع ملفات تعريف الارتباط",
        "رفض الكل",
        "ملفات تعريف الارتباط الضرورية فقط",
        "المتابعة بدون موافقة",
        "إدارة التفضيلات",
        "إغلاق",
    ),
    "he": ("אישור כל העוגיות", "דחיית הכל", "רק עוגיות הכרחיות", "המשך ללא הסכמה", "הגדרות עוגיות", "סגירה"),
}
SAID = ("accept", "reject", "reject", "reject", "manage", "close")


@pytest.mark.parametrize("language", LABELS)
def test_the_labels_of_a_layer_are_understood_in_its_language(language):
    told = LABELS[language]
    assert [(one, said_by(one)) for one in told] == list(zip(told, SAID, strict=True))


def test_every_list_knows_every_language():
    assert set(LANGUAGES) == {"en", "de", "fr", "es", *LABELS}
    assert {name: frozenset(lists) for name, lists in RAW.items()} == dict.fromkeys(RAW, frozenset(LANGUAGES))


MORE = [
    ("Accetta tutti, non solo necessari", "accept"),
    ("Accetta necessari e profilazione", "accept"),
    ("Solo necessari e partner", "unknown"),
    ("Non rifiutare", "unknown"),
    ("Rifiuta e abbonati", "unknown"),
    ("Ho capito", "accept"),
    ("Acceptera nödvändiga och statistik", "accept"),
    ("Nicht nur: alle weigeren", "unknown"),
    ("Alleen noodzakelijke en statistieken", "unknown"),
    ("Nem szükségesek elfogadása", "accept"),
    ("Accept cele necesare și marketing", "accept"),
    ("Зрозуміло", "accept"),
    ("Не отклонять", "unknown"),
    ("Принять необходимые и рекламные", "accept"),
    ("広告以外を拒否", "unknown"),
    ("拒否しない", "unknown"),
    ("同意して続ける", "accept"),
    ("不拒绝", "unknown"),
    ("不仅接受必要的", "accept"),
    ("接受不必要的 Cookie", "accept"),
    ("거부하지 않음", "unknown"),
    ("동의하고 계속하기", "accept"),
    ("لا أرفض", "unknown"),
    ("Ret indstillinger", "manage"),
    ("KABUL EDİYORUM", "accept"),
    ("AYARLARI YÖNET", "manage"),
    ("ΑΠΌΡΡΙΨΗ ΌΛΩΝ", "reject"),
]


@pytest.mark.parametrize(("label", "said"), MORE)
def test_what_takes_more_or_refuses_to_refuse_is_no_refusal(label, said):
    assert said_by(label) == said


def of(name, language):
    return st.sampled_from(RAW[name][language])


IN_ONE_LANGUAGE = st.sampled_from(LANGUAGES)
JOINS = st.sampled_from([" ", ", ", " & ", " – "])


@st.composite
def accepting(draw):
    """An acceptance between other phrases of its language, none of which is about the necessary or says no to it."""
    language = draw(IN_ONE_LANGUAGE)
    names = ("consent_reject", "consent_manage", "label_plain", "consent_everything", "layer_close", "consent_things")
    around = st.sampled_from([phrase for name in names for phrase in RAW[name][language]])
    parts = [
        *draw(st.lists(around, max_size=2)),
        draw(of("consent_accept", language)),
        *draw(st.lists(around, max_size=2)),
    ]
    return draw(JOINS).join(parts)


@given(accepting())
def test_no_label_with_a_word_of_acceptance_refuses_unless_it_speaks_of_the_necessary_or_negates(label):
    spoken = {words_of(phrase) for texts in RAW["consent_necessary"].values() for phrase in texts}
    words = words_of(label)
    things = {word for texts in RAW["consent_things"].values() for phrase in texts for word in words_of(phrase)}
    bare = tuple(word for word in words if word not in things)
    about = any(
        told[i:j] in spoken for told in (words, bare) for i in range(len(told)) for j in range(i, len(told) + 1)
    )
    if not about:
        assert said_by(label) == "accept"


@st.composite
def widened(draw):
    """Only the necessary, and something else besides."""
    language = draw(IN_ONE_LANGUAGE)
    more = st.one_of(of("consent_extras", language), of("consent_everything", language))
    return (
        draw(of("consent_accept", language)) + draw(JOINS) + draw(of("consent_necessary", language)) + " " + draw(more)
    )


@given(widened())
def test_the_necessary_and_more_is_never_read_as_a_refusal(label):
    assert said_by(label) != "reject"


@st.composite
def with_a_yes_and_a_no(draw):
    language = draw(IN_ONE_LANGUAGE)
    accept = draw(of("consent_accept", language))
    phrases, own = RAW["consent_necessary"][language], words_of(accept)
    # "Accepteer niet" negates by what follows; then the two are one phrase.
    if any(words_of(phrase)[: len(own)] == own for phrase in phrases):
        return accept, []
    return accept, [phrase for phrase in phrases if said_by(f"{accept}. {phrase}") == "reject"]


@given(with_a_yes_and_a_no())
def test_a_yes_before_a_no_stays_a_yes(pair):
    """Only "accept" before "only the necessary" is one thing; before "I do not accept" it is two."""
    accept, phrases = pair
    negations = {words_of(phrase) for texts in RAW["consent_negation"].values() for phrase in texts}
    for phrase in phrases:
        words = words_of(phrase)
        assert not any(words[i:j] in negations for i in range(len(words)) for j in range(i + 1, len(words) + 1)), accept


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_plain_word_means_more_in_any_language(language):
    """A word that fills a label in one language must not be what another one takes with it."""
    plain = {words_of(phrase) for phrase in RAW["label_plain"][language]}
    for name in ("consent_accept", "consent_everything", "consent_extras"):
        for other, texts in RAW[name].items():
            assert not plain & {words_of(phrase) for phrase in texts}, (name, other)


# -- letters that look like others


@pytest.mark.parametrize(
    "label",
    ["Ассept all", "АССЕРТ ALL", "Αccept", "Acceрt cookies", "ᴀᴄᴄᴇᴘᴛ", "A11ow", "0K", "Settings Ассept", "Akzeptiеren"],
)
def test_acceptance_in_look_alike_letters_is_acceptance(label):
    assert said_by(label) == "accept"


@pytest.mark.parametrize("label", ["Rеject all", "Reject аll", "Сlose", "Mаnage options", "Оnly necessary"])
def test_a_word_that_mixes_alphabets_is_not_understood(label):
    assert unicodedata.normalize("NFKC", label) == label
    assert said_by(label) == "unknown"


@pytest.mark.parametrize("language", ["ru", "uk", "el"])
def test_honest_words_of_other_alphabets_keep_their_meaning(language):
    for name, said in (("consent_reject", "reject"), ("consent_necessary", "reject"), ("layer_close", "close")):
        for phrase in RAW[name][language]:
            assert {said_by(phrase), said_by(phrase.upper())} == {said}, phrase


def test_only_whole_words_are_seen_as_latin_ones():
    assert as_seen(("ассерт", "принять", "2024", "0k")) == ("accept", "принять", "2024", "ok")


# -- on the way to the page


def test_the_page_gets_every_phrase_once_and_in_ascii_where_an_alphabet_allows():
    lists = {"fr": ["Décliner"], "de": ["ablehnen", "Ablehnen"], "ru": ["отказ cookie"], "ja": ["拒否"]}
    russian = "C" + "".join(chr(ord(one) - 0x430 + 0x40) for one in "отказ") + " cookie"
    assert packed("consent_reject", lists) == {"fr": "decliner", "de>": "ablehnen", "ru": russian, "ja>": "拒否"}
