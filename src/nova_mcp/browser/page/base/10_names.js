// Accessible names by the W3C rules: references, declared labels, native sources, content, tooltips.
const MOST_NAME = 200;
const MOST_TEXT = 400;
const MOST_NODES = 200;
// A page may write a book into an attribute; a name is cut far below this.
const LONGEST_SOURCE = 20000;
// How a walk came to an element decides what it may take from it.
const [SELF, CHILD, LABEL, REFERENCE] = [0, 1, 2, 3];

const textContentOf = getter(Node.prototype, "textContent");
const says = (text) => /\S/.test(text);
const isTrue = (el, name) => (attr(el, name) ?? "").toLowerCase() === "true";

// -- relations that are looked up for many elements: one pass over the tree serves them all

const treeRelations = new Map();
const forgetLabels = () => treeRelations.clear();
asked.push(forgetLabels);

const relationsIn = (root) => {
  let known = treeRelations.get(root);
  if (known !== undefined) return known;
  treeRelations.set(root, (known = { labels: new Map(), owners: new Map() }));
  for (const el of queryAll(root, "label,[aria-owns]")) {
    const control = tagOf(el) === "label" ? labelControl(el) : null;
    if (control !== null) known.labels.set(control, [...(known.labels.get(control) ?? []), el]);
    if (hasAttribute(el, "aria-owns")) noteOwner(el, known.owners);
  }
  return known;
};
const noteOwner = (owner, owners) => {
  if (isHiddenSource(owner)) return;
  for (const other of pointedAt(owner, "aria-owns", 20)) if (!owners.has(other) && !composedContains(other, owner)) owners.set(other, owner);
};

const NONE = Object.freeze([]);
const labelsFor = (el) => (LABELABLE.has(tagOf(el)) ? relationsIn(rootNode(el)).labels.get(el) ?? NONE : NONE);

const pointedAt = (el, name, limit) => {
  const list = attr(el, name);
  if (list === null || !says(list)) return [];
  const root = rootNode(el);
  const found = [];
  for (const id of tokensOf(list).slice(0, limit)) {
    const other = idIn(root, id);
    if (other !== null) found.push(other);
  }
  return found;
};

// -- what is shown

// A box of its own is missing to what is laid out as contents, though its text is there.
const isLaidOut = (el) => {
  const held = closest(el, (node) => checkVisible(node) || styleOf(node).display !== "contents");
  return held !== null && checkVisible(held);
};
const SHOWN = Object.freeze({ visibilityProperty: true });
const isHiddenSource = (el) =>
  isTrue(el, "aria-hidden") || (!checkVisible(el, SHOWN) && (!isLaidOut(el) || styleOf(el).visibility !== "visible"));

const faintInk = (el, style) => illegible(el, style) || withoutInk(el, style);

// -- the walk

// `budget`: nodes left, and what was read already, which is not read again as part of something around it. `root`: where
// the text is taken from now.
// `faint`: that place is itself drawn without ink, so its parts are not left out for the same reason; null until asked.
// `bare`: what somebody may have put into a field is left out; `budget.held` then tells that there was a field.
const newWalk = (start, budget, bare = false) => ({ start, budget, bare, path: [], ids: false, hidden: false, root: start, faint: null });
const isFaint = (walk) => (walk.faint ??= !opaque(walk.root) || faintInk(walk.root, styleOf(walk.root)));

const referred = (el, how, walk) => {
  const ids = walk.ids || how === REFERENCE;
  const hidden = walk.hidden || isHiddenSource(el);
  const inner = { ...walk, path: how === REFERENCE ? [] : walk.path, ids, hidden, root: el, faint: null };
  return alternative(el, how, inner);
};

const referredAll = (list, how, walk) =>
  list.length === 0 ? "" : list.map((el) => referred(el, how, walk).trim()).filter(Boolean).join(" ");

const alternative = (el, how, walk, role = roleOf(el)) => {
  const { budget } = walk;
  if (budget.left <= 0 || walk.path.includes(el)) return "";
  // A label around its own field leaves that field out; a reference to what holds the element reads all of it.
  if (how === CHILD && ((el === walk.start && !walk.ids) || budget.seen?.has(el))) return "";
  if (how !== CHILD) budget.left -= 1;
  if (how !== SELF) (budget.seen ??= new Set()).add(el);
  walk.path.push(el);
  const text = sourceText(el, role, how, walk);
  walk.path.pop();
  return text;
};

const sourceText = (el, role, how, walk) => {
  if (!walk.ids && hasAttribute(el, "aria-labelledby")) {
    const text = referredAll(pointedAt(el, "aria-labelledby", 10), REFERENCE, walk);
    if (text !== "") return text;
  }
  if (how !== SELF && el !== walk.start) {
    const value = walk.bare ? null : embeddedValue(el, role, walk);
    if (value === null && (RANGES.has(role) || isFilledIn(el, tagOf(el), role))) {
      walk.budget.held = true;
      return "";
    }
    if (value !== null && says(value)) return value;
  }
  const label = attr(el, "aria-label");
  if (label !== null && says(label)) return label;
  const tag = tagOf(el);
  if (role !== "none") {
    const native = nativeText(el, tag, walk);
    if (says(native)) return native;
  }
  const open = how !== SELF || CONTENT_NAMED.has(role);
  const text = open && !(walk.bare && isFilledIn(el, tag, role)) ? contentText(el, walk) : "";
  if (says(text) || role === "none" || (how === SELF && isOnlyText(el, role, walk))) return text;
  // Blanks may still keep two words apart.
  return tooltip(el, tag, el === walk.start && how === CHILD) || text;
};

// The title of running text describes it; it is no name for what can be read anyway, unless the markup says so.
const NAMED_BY_TITLE = new Set(["abbr", "blockquote", "figure"]);
const isOnlyText = (el, role, walk) =>
  PLAIN_ROLES.has(role) && hasAttribute(el, "title") && !NAMED_BY_TITLE.has(tagOf(el)) && says(contentText(el, walk));

const FREE_TEXT = new Set(["textbox", "searchbox"]);
const RANGES = new Set(["slider", "spinbutton", "scrollbar", "progressbar", "meter"]);
const selectedText = (el) => {
  const parts = [];
  for (const option of selectOptions(el)) if (parts.length < 20) parts.push(optionText(option));
  return parts.join(" ");
};

const isFilledIn = (el, tag, role) => FREE_TEXT.has(role) || role === "combobox" || role === "listbox" || tag === "textarea" || tag === "select" || isEditableHost(el);

// A control inside the name of another speaks through its value, if it has one.
const embeddedValue = (el, role, walk) => {
  const tag = tagOf(el);
  if (FREE_TEXT.has(role) || role === "combobox") {
    if (tag === "select") return selectedText(el);
    if (tag === "input" || tag === "textarea") return isSecret(el) ? "" : rawValue(el);
    if (role !== "combobox") return contentText(el, walk);
  }
  if (role === "listbox" || role === "combobox") {
    if (tag === "select") return selectedText(el);
    const chosen = [...elementAll(el, "[role=option][aria-selected=true]")].slice(0, 20);
    if (chosen.length) return chosen.map((option) => alternative(option, CHILD, walk).trim()).join(" ");
    return role === "combobox" ? contentText(el, walk) : "";
  }
  if (!RANGES.has(role)) return "";
  return attr(el, "aria-valuetext") ?? attr(el, "aria-valuenow") ?? (tag === "input" ? inputValue(el) : attr(el, "value") ?? "");
};

// -- native sources

const firstNamed = (el, tag) => {
  for (let node = firstChild(el); node !== null; node = nextSibling(node)) if (isElement(node) && tagOf(node) === tag) return node;
  return null;
};

const fromChild = (tag) => (el, walk) => {
  const child = firstNamed(el, tag);
  return child === null ? "" : referred(child, LABEL, walk);
};

const fromLabels = (el, walk) => referredAll(labelsFor(el).slice(0, 5), LABEL, walk);

const BUTTON_WORDS = { submit: "Submit", reset: "Reset", button: "" };
const inputText = (el, walk) => {
  const label = fromLabels(el, walk);
  if (label !== "") return label;
  const type = inputType(el);
  if (Object.hasOwn(BUTTON_WORDS, type)) return attr(el, "value") ?? BUTTON_WORDS[type];
  if (type === "image") return attr(el, "alt") || attr(el, "value") || attr(el, "title") || "Submit";
  return "";
};

const given = (name) => (el) => attr(el, name) ?? "";
const captionOrSummary = (el, walk) => fromChild("caption")(el, walk) || (attr(el, "summary") ?? "");
const svgTitle = (el) => {
  const title = firstNamed(el, "svg:title");
  return title === null ? "" : textContentOf(title);
};
const NATIVE_TEXT = new Map(Object.entries({
  input: inputText, button: fromLabels, select: fromLabels, textarea: fromLabels, meter: fromLabels, progress: fromLabels,
  output: fromLabels, img: given("alt"), area: given("alt"), fieldset: fromChild("legend"), table: captionOrSummary,
  figure: fromChild("figcaption"), optgroup: given("label"), option: given("label"),
}));

const nativeText = (el, tag, walk) => {
  if (tag.startsWith("svg:")) return svgTitle(el);
  const source = NATIVE_TEXT.get(tag);
  return source === undefined ? "" : source(el, walk);
};

const HINTED = new Set(["input", "textarea"]);
const tooltip = (el, tag, titleOnly) => {
  const title = attr(el, "title") ?? (tag === "svg:a" ? attr(el, "xlink:title") : null);
  if (titleOnly || (title !== null && says(title))) return title ?? "";
  if (tag === "input" && inputType(el) === "file") return hasAttribute(el, "multiple") ? "Choose Files" : "Choose File";
  return (HINTED.has(tag) ? attr(el, "placeholder") : null) ?? attr(el, "aria-placeholder") ?? "";
};

// -- content

const SILENT = new Set(["script", "style", "template", "noscript", "svg:title", "svg:desc", "svg:defs", "svg:style"]);
const SPEAKING = ["aria-label", "aria-labelledby", "aria-owns", "title", "alt", "value"];
const VALUED = new Set(["input", "textarea", "select", "img", "meter", "progress", "slot"]);
const isBare = (el, tag) =>
  firstChild(el) === null && openShadow(el) === null && !VALUED.has(tag) && !SPEAKING.some((name) => hasAttribute(el, name));

// What stands inside is shown only where the element itself cannot be.
const REPLACED = new Set(["video", "audio"]);
const contentText = (el, walk) => {
  if (REPLACED.has(tagOf(el))) return "";
  const written = mayBeWrittenTo(el, firstChild(el) === null);
  let text = written ? generatedText(el, "::before") : "";
  const only = firstChild(el);
  const plain = only !== null && isText(only) && nextSibling(only) === null;
  if (plain && openShadow(el) === null && tagOf(el) !== "details") text += dataOf(only).slice(0, MOST_TEXT);
  else text += childrenText(el, walk);
  if (hasAttribute(el, "aria-owns"))
    for (const other of pointedAt(el, "aria-owns", 20)) if (relationsIn(rootNode(el)).owners.get(other) === el) text += ` ${childText(other, walk)}`;
  return written ? text + generatedText(el, "::after") : text;
};

// Closed details show their summary alone.
const namedParts = (el, walk) => {
  const parts = composedChildren(el);
  return walk.hidden || tagOf(el) !== "details" || detailsOpen(el) ? parts : [...parts].filter((part) => isElement(part) && isSummaryOfDetails(part));
};

const childrenText = (el, walk, mute = false) => {
  let text = "";
  const { owners } = relationsIn(rootNode(el));
  for (const child of namedParts(el, walk)) {
    if (walk.budget.left <= 0 || text.length > MOST_TEXT) break;
    if (isText(child)) {
      walk.budget.left -= 1;
      if (!mute) text += dataOf(child).slice(0, LONGEST_SOURCE);
    } else if (isElement(child) && !(owners.size > 0 && owners.has(child))) text += childText(child, walk);
  }
  return text;
};

const childText = (el, walk) => {
  const tag = tagOf(el);
  if (SILENT.has(tag)) return "";
  if ((walk.budget.left -= 1) <= 0) return "";
  if (tag === "br") return " ";
  if (tag === "slot") return contentText(el, walk);
  if (isBare(el, tag) && !mayBeWrittenTo(el, true)) return "";
  if (walk.hidden) return spaced(alternative(el, CHILD, walk), styleOf(el).display);
  if (isTrue(el, "aria-hidden")) return "";
  if (checkVisible(el, PLAINLY_SHOWN)) {
    const text = alternative(el, CHILD, walk);
    return says(text) ? inkedText(el, text, styleOf(el), walk) : text;
  }
  const style = styleOf(el);
  const boxless = style.display === "contents";
  if (!boxless && (!checkVisible(el) || !(opaque(el) || isFaint(walk)))) return "";
  // Inside something invisible a part may be visible again.
  const text = style.visibility === "visible" ? alternative(el, CHILD, walk) : childrenText(el, walk, true);
  return inkedText(el, text, style, walk);
};

const inkedText = (el, text, style, walk) =>
  style.contentVisibility === "hidden" || (faintInk(el, style) && !isFaint(walk)) ? "" : spaced(text, style.display);

const spaced = (text, display) => (display === "inline" || display === "contents" ? text : ` ${text} `);

// -- answers

// The text of an element as it would stand in a name, whatever its role; only what is drawn with ink.
const namedText = (el, depth, budget) => contentText(el, { ...newWalk(el, budget), faint: false });

// The same two without anything that was entered: for what outlives the page.
const bareText = (el, nodes) => (isFilledIn(el, tagOf(el), roleOf(el)) ? "" : contentText(el, { ...newWalk(el, { left: nodes }, true), faint: false }));
const bareName = (el, role) => {
  const budget = { left: MOST_NODES };
  const text = squash(alternative(el, SELF, newWalk(el, budget, true), role).slice(0, LONGEST_SOURCE));
  return { text, held: budget.held === true };
};

const fromIds = (el, list) => {
  const walk = newWalk(el, { left: MOST_NODES });
  const root = rootNode(el);
  const found = tokensOf(list).slice(0, 5).map((id) => idIn(root, id)).filter((other) => other !== null);
  return squash(referredAll(found, REFERENCE, walk));
};

// One question asks for the same name several times; between two turns of the page nothing is kept.
const knownNames = new Map();
const forgetNames = () => knownNames.clear();
asked.push(forgetNames);
const nameOf = (el, role) => {
  const known = knownNames.get(el);
  if (known !== undefined && known[0] === role) return known[1];
  if (knownNames.size === 0) Promise.resolve().then(forgetNames);
  const name = cut(squash(alternative(el, SELF, newWalk(el, { left: MOST_NODES }), role).slice(0, LONGEST_SOURCE)), MOST_NAME);
  knownNames.set(el, [role, name]);
  return name;
};
