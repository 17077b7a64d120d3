// Words on controls. `WORDS` comes with the bundle: list name → language → phrases; > after a language whose labels may end with one.
const PLAIN_LETTERS = /^[\x00-\x7f]*$/;
const PLAIN_FORMS = { "ß": "ss", "ς": "σ", "ı": "i", "ł": "l", "ø": "o", "đ": "d", "æ": "ae" };
// What is written without spaces is read character by character, so that a phrase is found inside a longer run.
const UNSPACED = /[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]/;
const WORD_PARTS = new RegExp(UNSPACED.source + "|(?:(?!" + UNSPACED.source + ")[\\p{L}\\p{N}])+", "gu");
const bareLetters = (low) =>
  PLAIN_LETTERS.test(low) ? low : low.normalize("NFKD").replace(/[\p{Cf}]|(?![\u0e31-\u0e4e])\p{M}/gu, "").normalize("NFC").replace(/[ßςıłøđæ]/g, (one) => PLAIN_FORMS[one]);
const wordParts = (low) => low.match(PLAIN_LETTERS.test(low) ? /[a-z0-9]+/g : WORD_PARTS) ?? [];
const foldText = (text) => bareLetters(text.slice(0, 400).toLowerCase());
const foldedTexts = new Map();
const foldWords = (text) => {
  let words = foldedTexts.get(text);
  if (words === undefined) {
    if (foldedTexts.size > 5000) foldedTexts.clear();
    foldedTexts.set(text, (words = wordParts(foldText(text))));
  }
  return words;
};
const identifierParts = (id) => foldWords(id.slice(0, 200).replace(/([a-z0-9])(?=[A-Z])/g, "$1 "));

// A capital names the alphabet of a word that travelled in ASCII.
const spelledOut = (word) => {
  const first = ALPHABETS[word[0]];
  return first === undefined ? wordParts(word) : [[...word.slice(1)].map((one) => String.fromCharCode(one.charCodeAt(0) - 64 + first)).join("")];
};
const phraseLists = new Map();
const phrasesOf = (kind) => {
  let list = phraseLists.get(kind);
  if (list === undefined) {
    list = Object.entries(WORDS[kind]).flatMap(([lang, phrases]) => phrases.split("|").map((text) => {
      const words = text.split(" ").flatMap(spelledOut);
      words.lang = lang.replace(">", "");
      return { words, last: lang.endsWith(">") };
    }));
    list.sort((left, right) => right.words.length - left.words.length);
    phraseLists.set(kind, list);
  }
  return list;
};

const standsAt = (words, phrase, index) => phrase.length + index <= words.length && phrase.every((word, i) => words[index + i] === word);

// Phrases by their first word, the longer ones first, and those that may end a label by their last one.
const phraseIndexes = new Map();
const indexOf = (kind) => {
  let index = phraseIndexes.get(kind);
  if (index === undefined) {
    index = { first: new Map(), last: new Map() };
    const put = (map, word, phrase) => map.set(word, [...(map.get(word) ?? []), phrase]);
    for (const phrase of phrasesOf(kind)) {
      put(index.first, phrase.words[0], phrase.words);
      if (phrase.last) put(index.last, phrase.words.at(-1), phrase.words);
    }
    phraseIndexes.set(kind, index);
  }
  return index;
};
const startingAt = (kind, words, index) => (indexOf(kind).first.get(words[index]) ?? []).find((phrase) => standsAt(words, phrase, index));
const among = (kind, words) => words.some((_, index) => startingAt(kind, words, index) !== undefined);

// The phrase stands anywhere in the text, as whole words.
const mentions = (kind, text) => among(kind, foldWords(text));

// Three characters of a script without spaces are about one word.
const lengthOf = (words) => {
  const unspaced = words.filter((word) => UNSPACED.test(word)).length;
  return words.length - unspaced + Math.ceil(unspaced / 3);
};
// The label is the phrase and little else: it begins with it, or ends with it where a language puts its verb last.
const leads = (kind, text, most = 6) => {
  const words = foldWords(text);
  if (words.length === 0 || lengthOf(words) > most) return false;
  if (startingAt(kind, words, 0) !== undefined) return true;
  return (indexOf(kind).last.get(words.at(-1)) ?? []).some((phrase) => standsAt(words, phrase, words.length - phrase.length));
};

// Which phrase a text is, if it is one and nothing else.
const phraseIn = (kind, text) => {
  const words = foldWords(text);
  const found = (indexOf(kind).first.get(words[0]) ?? []).find((phrase) => phrase.length === words.length && standsAt(words, phrase, 0));
  return found === undefined ? null : found.join(" ");
};
const isPhrase = (kind, text) => phraseIn(kind, text) !== null;

// An identifier such as `model-switcher` or `btnSend` holds a phrase of the list.
const inIdentifier = (kind, id) => id !== "" && among(kind, identifierParts(id));
