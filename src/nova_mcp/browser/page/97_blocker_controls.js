// Controls of a layer: what each of them does, by its words and by what is known of its platform. What Nova itself may
// press is decided once more outside the page, by the same lists.
const LABELS = ["accept", "reject", "close", "manage", "save"];
const PLATFORM_CONTROLS = Object.fromEntries(LABELS.map((label) => [label, PLATFORMS.platforms.flatMap((one) => one[label] ?? []).join(",")]));
const MOST_CHOICES = 60;
const MOST_TOGGLES = 300;

// -- words on controls

const CLOSE_SIGNS = new Set(["×", "✕", "✖", "✗", "✘", "╳", "⨯", "🗙", "❌", "x", "X"]);
const longWords = (text) => text.slice(0, 8000).toLowerCase().replace(/ß/g, "ss").normalize("NFKD").replace(/\p{M}+/gu, "").match(/[\p{L}\p{N}]+/gu) ?? [];

// The order decides: what takes only the necessary is no acceptance, and whatever accepts is nothing else.
const saidBy = (text) => {
  const said = squash(text);
  if (said === "") return null;
  if (CLOSE_SIGNS.has(said)) return "close";
  const words = foldWords(said);
  if (words.length === 0) return "unknown";
  const informs = leads("label_informs", said, 40);
  const bounded = !among("consent_everything", words) && !among("consent_extras", words);
  if (among("consent_necessary", words) && bounded) return informs || words.length > 9 ? "unknown" : "reject";
  if (among("consent_accept", words) || leads("consent_go_on", said, 40)) return "accept";
  if (informs) return "unknown";
  if (leads("consent_reject", said, 8)) return strayNegation(words) ? "unknown" : "reject";
  if (leads("offer_declined", said, 12)) return "decline";
  if (isPhrase("layer_close", said)) return "close";
  if (leads("consent_save", said, 6)) return "save";
  return leads("consent_manage", said, 6) ? "manage" : "unknown";
};

// "Don't reject" says the opposite of what it begins or ends with; a negation inside the phrase itself is meant.
const strayNegation = (words) => {
  const rest = words.filter((_, index) => !words.some((__, start) => {
    const phrase = startingAt("consent_reject", words, start);
    return phrase !== undefined && start <= index && index < start + phrase.length;
  }));
  return among("consent_negation", rest);
};

const OWN_WORDS = ["id", "name", "value", "data-action", "data-role", "data-testid", "data-choice", "data-consent", "class"];
const ownIdentifiers = (el) => OWN_WORDS.map((name) => cut(attr(el, name) ?? "", 120)).filter((text) => text !== "");
const ACCEPTING_PART = /(^|[^a-z])(accept|agree|allow|optin|opt-in|consent-yes|akzeptieren|accepter|aceptar)/i;
const LESS_PART = /necess|essent|requir|reject|deny|declin|refus|disagree|only|without/i;
const saysAccept = (identifiers) => identifiers.some((id) => ACCEPTING_PART.test(id.replace(/([a-z])([A-Z])/g, "$1-$2")) && !LESS_PART.test(id));

const platformLabel = (el) => LABELS.find((label) => PLATFORM_CONTROLS[label] !== "" && matches(el, PLATFORM_CONTROLS[label])) ?? null;

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

// What is switched on in favour of the site. Whoever can't be read, or asks the other way round, can't be set either.
const switchesIn = (root) => {
  const found = [];
  const groups = new Map();
  for (const el of queryDeep(root, TOGGLE_CSS, MOST_TOGGLES)) {
    const locked = isDisabled(el) !== null;
    if (roleOf(el) === "radio") {
      groups.set(groupKey(el), [...(groups.get(groupKey(el)) ?? []), el]);
      continue;
    }
    const name = nameOf(el, roleOf(el));
    found.push({ el, on: checkedState(el), locked, stuck: !locked && mentions("toggle_inverted", name) });
  }
  for (const radios of groups.values()) {
    const off = radios.find((el) => leads("toggle_off", nameOf(el, "radio"), 4) || leads("consent_reject", nameOf(el, "radio"), 4));
    if (off === undefined) found.push({ el: radios[0], on: true, locked: radios.every((el) => isDisabled(el) !== null), stuck: true });
    else found.push({ el: off, on: !checkedState(off), locked: isDisabled(off) !== null, stuck: false, picks: true });
  }
  return found.map((one) => ({ ...one, shown: switchShown(one.el) }));
};
