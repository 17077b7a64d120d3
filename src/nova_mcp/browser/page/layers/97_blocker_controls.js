// Controls of a layer: what each of them does, by its words and by what is known of its platform. What Nova itself may
// press is decided once more outside the page, by the same lists.
const LABELS = ["accept", "reject", "close", "manage", "save"];
const PLATFORM_ACCEPTS = PLATFORMS.platforms.flatMap((one) => one.accept ?? []).join(",");
const PLATFORM_PARTS = PLATFORMS.platforms.map((one) => ({
  roots: one.roots.join(","), framed: (one.frames ?? []).length > 0,
  labels: LABELS.map((label) => [label, (one[label] ?? []).join(",")]).filter(([, css]) => css !== ""),
}));
const MOST_CHOICES = 60;
const MOST_TOGGLES = 300;

// -- words on controls

const CLOSE_SIGNS = new Set(["×", "✕", "✖", "✗", "✘", "╳", "⨯", "🗙", "❌", "x", "X"]);
const longWords = (text) => wordParts(bareLetters(text.slice(0, 8000).toLowerCase()));

// Letters that look like Latin ones hide no acceptance, and a word that mixes alphabets means nothing else.
const SEEN_AS = new Map([...LOOK_ALIKES.from].map((one, index) => [one, LOOK_ALIKES.to[index]]));
const PASSING = /[\u0250-\u02af\u0370-\u058f\u10a0-\u10ff\u13a0-\u13ff\u1d00-\u1dbf\u2c80-\u2d2f\ua4d0-\ua4ff\ua720-\ua7ff\uab30-\uabbf]/;
const asSeen = (word) => {
  const seen = /\p{L}/u.test(word) ? [...word].map((one) => SEEN_AS.get(one) ?? one).join("") : word;
  return PLAIN_LETTERS.test(seen) ? seen : word;
};
const acceptsInDisguise = (words) => {
  const seen = words.map(asSeen);
  const changed = (from, size) => words.slice(from, from + size).some((word, index) => word !== seen[from + index]);
  if (!changed(0, words.length)) return false;
  const starts = (list, index) => changed(index, startingAt(list, seen, index)?.length ?? 0);
  return seen.some((_, index) => starts("consent_accept", index)) || (changed(0, 1) && startingAt("consent_go_on", seen, 0) !== undefined);
};

const saidBy = (text) => {
  const said = squash(text);
  if (said === "") return null;
  if (CLOSE_SIGNS.has(said)) return "close";
  const words = foldWords(said);
  if (words.length === 0) return "unknown";
  if (acceptsInDisguise(words)) return "accept";
  return words.some((word) => /[a-z]/.test(word) && PASSING.test(word)) ? "unknown" : saidIn(said, words);
};

// The order decides: what takes only the necessary is no acceptance, and whatever accepts is nothing else.
const saidIn = (said, words) => {
  const informs = leads("label_informs", said, 40);
  const bounded = !among("consent_everything", words) && !among("consent_extras", words);
  for (const told of bounded ? [words, unspoken(words, "consent_things")] : [])
    if (among("consent_necessary", told)) {
      if (informs || lengthOf(words) > 9) return "unknown";
      if (takesLeast(told)) return "reject";
    }
  if (among("consent_accept", words) || leads("consent_go_on", said, 40)) return "accept";
  return informs ? "unknown" : harmlessLabel(said, words);
};

const harmlessLabel = (said, words) => {
  if (leads("consent_reject", said, 8))
    return unspoken(words, "consent_reject", "label_plain", "consent_things", "label_refused", "consent_everything", "consent_extras").length ? "unknown" : "reject";
  for (const [list, outcome] of [["offer_declined", "decline"], ["offer_postponed", "close"]])
    if (leads(list, said, 12)) return unspoken(words, list, "label_plain").length ? "excuse" : outcome;
  if (isPhrase("layer_close", said)) return "close";
  if (leads("consent_save", said, 6)) return unspoken(words, "consent_save", "label_plain", "consent_things").length ? "unknown" : "save";
  if (among("consent_everything", words) || among("consent_extras", words)) return "unknown";
  return leads("consent_manage", said, 6) ? "manage" : "unknown";
};

// Words that no phrase of these lists covers, in the language that covers most: a label is understood whole or not at all.
const unspoken = (words, ...lists) => {
  const spoken = new Map();
  for (const list of lists)
    for (let index = 0; index < words.length; index += 1)
      for (const phrase of indexOf(list).first.get(words[index]) ?? [])
        if (standsAt(words, phrase, index)) {
          if (!spoken.has(phrase.lang)) spoken.set(phrase.lang, new Set());
          for (let i = 0; i < phrase.length; i += 1) spoken.get(phrase.lang).add(index + i);
        }
  const most = [...spoken].sort(([left, one], [right, other]) => other.size - one.size || (left < right ? -1 : 1))[0]?.[1];
  return most === undefined ? words : words.filter((_, index) => !most.has(index));
};

// "Accept only the necessary": one phrase of acceptance belongs to it, unless the phrase itself says no.
const takesLeast = (words) => {
  const negated = words.map((_, index) => startingAt("consent_necessary", words, index)).filter((phrase) => phrase !== undefined).map((phrase) => among("consent_negation", phrase));
  const rest = unspoken(words, "consent_necessary", "label_plain");
  if (negated.includes(true)) return !negated.includes(false) && rest.length === 0;
  return rest.length === 0 || isPhrase("consent_accept", rest.join(" "));
};

const OWN_WORDS = ["id", "name", "value", "data-action", "data-role", "data-testid", "data-choice", "data-consent", "class", "href", "formaction", "onclick"];
const ownIdentifiers = (el) => {
  const form = isSubmitter(el, formOwner(el)) ? formOwner(el) : null;
  const texts = [...OWN_WORDS.map((name) => attr(el, name)), form === null ? null : attr(form, "action")];
  return texts.map((text) => cut(text ?? "", 120)).filter((text) => text !== "");
};
const ACCEPTING_PART = /(^|[^a-z])(accept|agree|allow|optin|opt-in|consent-yes|akzeptieren|accepter|aceptar)/i;
const LESS_PART = /necess|essent|requir|reject|deny|declin|refus|disagree|only|without/i;
const saysAccept = (identifiers) => identifiers.some((id) => ACCEPTING_PART.test(id.replace(/([a-z])([A-Z])/g, "$1-$2")) && !LESS_PART.test(id));

// Names such as `decline-button` are common; only inside its own platform does one stand for more than its words.
const platformLabel = (el) => {
  if (matches(el, PLATFORM_ACCEPTS)) return "accept";
  for (const { roots, framed, labels } of PLATFORM_PARTS) {
    const found = labels.find(([, css]) => matches(el, css));
    if (found !== undefined && ((framed && WIN !== WIN.top) || closest(el, (node) => matches(node, roots)) !== null)) return found[0];
  }
  return null;
};

// Where a link leads: nowhere, elsewhere on this site, or away from it.
const leadsAway = (el) => {
  const href = tagOf(el) === "a" ? attr(el, "href") : null;
  if (!isDestination(href) || href.trim().startsWith("#")) return "";
  try {
    const url = new URL(href, DOC_BASE());
    if (url.origin === WIN.location.origin && url.pathname === WIN.location.pathname && url.search === WIN.location.search) return "";
    return url.origin === WIN.location.origin ? "same" : "other";
  } catch {
    return "other";
  }
};

const pressFacts = (el) => {
  const role = roleOf(el);
  const shown = squash(namedText(el, 0, { left: 80 }));
  const texts = [nameOf(el, role), shown, attr(el, "aria-label") ?? "", attr(el, "title") ?? "", tagOf(el) === "input" ? inputValue(el) : ""];
  return {
    texts: [...new Set(texts.map((text) => cut(squash(text), 200)).filter((text) => text !== ""))], identifiers: ownIdentifiers(el),
    platform: platformLabel(el), away: leadsAway(el), unfolds: hasAttribute(el, "aria-expanded") || role === "tab", small: isSmall(el),
  };
};
const isSmall = (el) => {
  const box = boxOf(el);
  return box.width <= 64 && box.height <= 64;
};

const CLOSING_PART = /(^|[^a-z])(close|dismiss|schliessen|fermer|cerrar)([^a-z]|$)/i;
const labelFor = (facts) => {
  const said = facts.texts.map(saidBy);
  if (facts.platform === "accept" || said.includes("accept")) return "accept";
  const clear = [...new Set(said.filter((one) => one !== "unknown"))];
  let label = facts.platform ?? (clear.length === 1 ? clear[0] : "unknown");
  if (facts.platform !== null && clear.length > 0 && !clear.includes(facts.platform)) label = "unknown";
  if (label === "unknown" && said.length === 0 && facts.small && facts.identifiers.some((id) => CLOSING_PART.test(id))) label = "close";
  if (label === "unknown") return label;
  if (facts.platform === null && saysAccept(facts.identifiers)) return "accept";
  if (facts.away === "other" || (facts.away === "same" && label !== "reject")) return "unknown";
  return facts.unfolds && label !== "manage" ? "unknown" : label;
};

// -- controls and switches of a layer

const CHOICE_CSS =
  "button,a,input[type=button],input[type=submit],input[type=image],[role=button],[role=link],[role=tab],[onclick],[tabindex],[aria-label],[class*=close i],[class*=dismiss i],[id*=close i]";
const TOGGLE_CSS = "input[type=checkbox],input[type=radio],[role=switch],[role=checkbox],[role=radio],[role=menuitemcheckbox]";
const PRESSED_ROLES = new Set(["button", "link", "menuitem", "tab"]);

const layerChoices = (root) => {
  const found = new Set();
  for (const el of queryDeep(root, CHOICE_CSS, 400)) {
    if (matches(el, TOGGLE_CSS) || tagOf(el) === "label" || DIALOG_ROLES.has(roleOf(el))) continue;
    const owner = closest(el, (node) => node === root || PRESSED_ROLES.has(roleOf(node)));
    found.add(owner === null || owner === root ? el : owner);
  }
  const shown = [...found].filter((el) => el !== root && visibleControl(el));
  // A wrapper that only looks like a control by its class is not one.
  return shown.filter((el) => PRESSED_ROLES.has(roleOf(el)) || !shown.some((other) => other !== el && composedContains(el, other))).slice(0, MOST_CHOICES);
};

const switchShown = (el) => visibleControl(el) || labelsFor(el).some(visibleControl);
const groupKey = (el) => `${numberOf(formOwner(el) ?? documentElement(DOC))} ${attr(el, "name") ?? numberOf(composedParent(el) ?? el)}`;

const isOffChoice = (el) => {
  const name = nameOf(el, "radio");
  return isPhrase("toggle_off", name) || saidBy(name) === "reject";
};

// Whatever looks like a switch and can't be read as one may be on.
const ODD_SWITCH_CSS = "select,input[type=range],[aria-checked],[aria-pressed],[class*=toggle i],[class*=switch i],[class*=slider i],[class*=checkbox i]";
const oddSwitches = (root, known) =>
  queryDeep(root, ODD_SWITCH_CSS, MOST_TOGGLES).filter((el) => {
    if (known.has(el) || tagOf(el) === "label" || !visibleControl(el) || known.has(labelledBy(el))) return false;
    if (matches(el, "select,input[type=range],[aria-checked],[aria-pressed]")) return true;
    if (PRESSED_ROLES.has(roleOf(el)) || shownTextOf(el, textBudget(40)) !== "") return false;
    const beside = [elementBeside(el, previousSibling), elementBeside(el, nextSibling)];
    return queryDeep(el, TOGGLE_CSS, 1).length === 0 && !beside.some((node) => node !== null && known.has(node));
  });
const elementBeside = (el, next) => {
  let node = next(el);
  while (node !== null && !isElement(node)) node = next(node);
  return node;
};
const labelledBy = (el) => {
  const label = closest(el, (node) => tagOf(node) === "label");
  return label === null ? null : labelControl(label);
};

// What is switched on in favour of the site. Whoever can't be read, asks the other way round, or is fixed to yes for
// more than the necessary, can't be set either.
const switchesIn = (root) => {
  const found = [];
  const groups = new Map();
  const known = new Set(queryDeep(root, TOGGLE_CSS, MOST_TOGGLES));
  for (const el of known) {
    const disabled = isDisabled(el) !== null;
    if (roleOf(el) === "radio") {
      groups.set(groupKey(el), [...(groups.get(groupKey(el)) ?? []), el]);
      continue;
    }
    const [name, on] = [nameOf(el, roleOf(el)), checkedState(el)];
    const forced = disabled && on && mentions("consent_extras", name);
    found.push({ el, on, locked: disabled && !forced, stuck: forced || (!disabled && mentions("toggle_inverted", name)) });
  }
  for (const radios of groups.values()) {
    const off = radios.find(isOffChoice);
    if (off === undefined) found.push({ el: radios[0], on: true, locked: radios.every((el) => isDisabled(el) !== null), stuck: true });
    else found.push({ el: off, on: !checkedState(off), locked: isDisabled(off) !== null && checkedState(off), stuck: false, picks: true });
  }
  if (found.length) for (const el of oddSwitches(root, known)) found.push({ el, on: true, locked: false, stuck: true });
  return found.map((one) => ({ ...one, shown: switchShown(one.el) }));
};
