// Registered scans: what a page says and how it is built. The text is taken by one walk and measured by another, which
// goes from text to what holds it, so that either can be held against the other.
const SCAN_MILLIS = 4000;
const MOST_LISTED = 2000;
const MOST_LABEL = 500;
const MOST_TAGS = 500;
const textSlot = getter(Text.prototype, "assignedSlot");

const scanBudget = () => ({ nodes: LIMITS.nodes, deadline: now() + SCAN_MILLIS, whole: true });
const spent = (budget) => {
  budget.nodes -= 1;
  if (budget.nodes > 0 && ((budget.nodes & 127) !== 0 || now() <= budget.deadline)) return false;
  [budget.nodes, budget.whole] = [0, false];
  return true;
};

// -- taking the text

class ScanSheet {
  constructor() {
    this.blocks = [];
    this.length = 0;
    this.line = "";
    this.lang = "";
  }

  put(text, lang) {
    if (lang !== this.lang) {
      this.flush();
      this.lang = lang;
    }
    this.line += text;
  }

  flush() {
    const text = leaving(this.line.replace(/\s+/g, " ").trim(), false);
    this.line = "";
    if (text === "") return;
    this.blocks.push(["text", this.lang, text]);
    this.length += text.length;
  }
}

// What a shadow tree shows of the element that holds it, without the tree itself.
const ownParts = (el) =>
  [...childNodesOf(el)].filter((node) => (isElement(node) ? assignedSlot(node) : isText(node) ? textSlot(node) : null) !== null);
const childNodesOf = function* (el) {
  for (let node = firstChild(el); node !== null; node = nextSibling(node)) yield node;
};
const partsOf = (el, taken) => (taken.shadow || openShadow(el) === null ? composedChildren(el) : ownParts(el));

const noteLabel = (taken, channel, lang, text) => {
  const label = text === null ? "" : cut(squash(text.slice(0, 5 * MOST_LABEL)), MOST_LABEL);
  if (label !== "" && taken.labels.length < MOST_LISTED) taken.labels.push([channel, lang, label]);
};

const FIELDS = new Set(["input", "select", "textarea"]);
const takeLabels = (el, tag, lang, taken) => {
  noteLabel(taken, "aria", lang, attr(el, "aria-label"));
  if (tag === "img" || tag === "area" || (tag === "input" && inputType(el) === "image")) noteLabel(taken, "alt", lang, attr(el, "alt"));
  if (!FIELDS.has(tag)) return;
  for (const label of labelsFor(el)) noteLabel(taken, "input", lang, readElement(label, { plain: true }));
  noteLabel(taken, "input", lang, attr(el, "placeholder"));
};

const noteHidden = (el, taken) => {
  const size = letters(textContentOf(el) ?? "");
  if (size === 0 || SKIPPED.has(tagOf(el))) return;
  taken.hidden.elements += 1;
  taken.hidden.chars += size;
};

const takeIn = (el, context, taken) => {
  if (context.level > MAX_LEVELS) taken.budget.whole = false;
  if (context.level > MAX_LEVELS || spent(taken.budget)) return;
  const tag = tagOf(el);
  const style = styleOf(el);
  const sight = sightOf(el, style, context);
  if (sight === null) return noteHidden(el, taken);
  const inner = { ...sight, lang: attr(el, "lang") ?? context.lang, level: context.level + 1 };
  takeLabels(el, tag, inner.lang, taken);
  const framed = frameDocuments.get(tag);
  if (framed !== undefined) return takeFrame(el, framed(el), inner, taken);
  if (SKIPPED.has(tag) || isWrittenField(el)) return;
  const { display } = style;
  const block = tag === "br" || tag === "hr" || BLOCK_DISPLAY.test(display) || HEADING_TAG.test(tag);
  const apart = !block && (display.startsWith("inline-") || display === "table-cell");
  if (block) taken.sheet.flush();
  if (apart) taken.sheet.put(" ", inner.lang);
  for (const child of partsOf(el, taken)) {
    if (isElement(child)) takeIn(child, inner, taken);
    else if (isText(child)) takeData(dataOf(child), inner, taken);
  }
  if (apart) taken.sheet.put(" ", inner.lang);
  if (block) taken.sheet.flush();
};

const takeData = (data, context, taken) => {
  if (context.mute) taken.hidden.chars += letters(data);
  else if (taken.sheet.length + taken.sheet.line.length > MAX_TEXT) taken.budget.whole = false;
  else if (says(data)) taken.sheet.put(data, context.lang);
  else taken.sheet.put(" ", taken.sheet.lang);
};

const isWindowed = (el) => {
  const box = boxOf(el);
  return box.width >= 8 && box.height >= 8;
};

const takeFrame = (el, doc, context, taken) => {
  const body = doc === null ? null : documentBody(doc);
  if (body === null || !isWindowed(el)) return;
  taken.seenFrames += 1;
  if (!taken.frames) return;
  taken.sheet.flush();
  const lang = attr(documentElement(doc), "lang") ?? "";
  takeIn(body, { ground: WHITE, mute: false, edge: pageEdge(windowOf(doc)), lang, level: context.level }, taken);
  taken.sheet.flush();
};

const takeText = ({ shadow = true, frames = true }) => {
  const taken = {
    sheet: new ScanSheet(), labels: [], hidden: { elements: 0, chars: 0 }, seenFrames: 0, shadow, frames, budget: scanBudget(),
  };
  const root = documentElement(DOC);
  const body = documentBody(DOC) ?? root;
  const lang = root === null ? "" : attr(root, "lang") ?? "";
  if (body !== null) takeIn(body, { ...topSight(), lang, level: 0 }, taken);
  taken.sheet.flush();
  return taken;
};

const takenChars = (taken) => taken.sheet.blocks.reduce((sum, block) => sum + letters(block[2]), 0);

// -- measuring it

const sightIn = (el, known) => {
  if (known.has(el)) return known.get(el);
  const around = sightAround(el, known);
  const own = around === null ? null : sightOf(el, styleOf(el), around);
  known.set(el, own);
  return own;
};

// The element in whose box a text is drawn; none where nothing draws it.
const textHolder = (node) => {
  const slot = textSlot(node);
  if (slot !== null) return slot;
  const up = parentNode(node);
  if (isShadow(up)) return shadowHost(up);
  if (!isElement(up) || openShadow(up) !== null) return null;
  return tagOf(up) === "slot" && slotted(up).length ? null : up;
};

const meterText = (node, meter) => {
  const data = dataOf(node);
  if (!says(data)) return;
  const holder = textHolder(node);
  const sight = holder === null ? null : sightIn(holder, meter.known);
  if (sight !== null && !sight.mute) meter.chars += letters(leaving(data, false));
};

const meterIn = (parent, level, meter) => {
  for (const node of childNodesOf(parent)) {
    if (isText(node)) meterText(node, meter);
    if (!isElement(node)) continue;
    if (level > MAX_LEVELS) meter.budget.whole = false;
    if (level > MAX_LEVELS || spent(meter.budget)) return;
    const tag = tagOf(node);
    const framed = frameDocuments.get(tag);
    if (framed !== undefined) meterFrame(node, framed(node), level, meter);
    else if (!SKIPPED.has(tag) && !isWrittenField(node) && sightIn(node, meter.known) !== null) {
      const shadow = openShadow(node);
      if (shadow !== null) meterIn(shadow, level + 1, meter);
      meterIn(node, level + 1, meter);
    }
  }
};

const meterFrame = (el, doc, level, meter) => {
  const body = doc === null ? null : documentBody(doc);
  if (!meter.frames || body === null || !isWindowed(el) || sightIn(el, meter.known) === null) return;
  meter.known.set(documentElement(doc), { ground: WHITE, mute: false, edge: pageEdge(windowOf(doc)) });
  if (sightIn(body, meter.known) !== null) meterIn(body, level + 1, meter);
};

// A text that is read as a whole is held against the same measure.
questions.coverageMeasure = ({ frames = true }) => {
  const meter = { chars: 0, frames, known: new Map(), budget: scanBudget() };
  const body = documentBody(DOC) ?? documentElement(DOC);
  if (body !== null && sightIn(body, meter.known) !== null) meterIn(body, 0, meter);
  return {
    url: pageAddress(), chars: meter.chars, whole: meter.budget.whole, ready: readyState(DOC) === "complete",
    status: documentStatus(),
  };
};

// -- how it is built

const ORDERED_TAGS = new Set(["header", "nav", "main", "aside", "section", "article", "footer"]);
const PRESSED = new Set(["button", "submit", "reset", "image"]);
const countKind = (el, tag, role, counts) => {
  if (role === "button" || tag === "button" || (tag === "input" && PRESSED.has(inputType(el)))) counts.button += 1;
  else if (tag === "input" ? inputType(el) !== "hidden" : tag === "textarea" || tag === "select") counts.input += 1;
  if (role === "link" || (tag === "a" && hasAttribute(el, "href"))) counts.link += 1;
  if (tag === "form") counts.form += 1;
  if (role === "heading" || HEADING_TAG.test(tag)) counts.heading += 1;
  if (DIALOG_ROLES.has(role) || (tag === "dialog" && hasAttribute(el, "open")) || isTrue(el, "aria-modal")) counts.modalLike += 1;
};

const takeBuild = (doc, options, built) => {
  const seen = walk(doc, (el) => {
    const tag = tagOf(el);
    const role = hasAttribute(el, "role") ? explicitRole(el) : null;
    if (openShadow(el) !== null) built.shadowRoots += 1;
    if (ORDERED_TAGS.has(tag) && built.tagOrder.length < MOST_TAGS) built.tagOrder.push(tag);
    const landmark = role ?? (SECTIONS.has(tag) ? roleOf(el) : null);
    if (LANDMARKS.has(landmark) && built.landmarks.length < MOST_TAGS) built.landmarks.push(landmark);
    if (role !== null && built.roles.size < MOST_TAGS) built.roles.add(role);
    countKind(el, tag, role, built.counts);
    if (tag === "a" && hasAttribute(el, "href") && built.links.size < MOST_LISTED) built.links.add(anchorHref(el));
    const framed = frameDocuments.get(tag);
    if (framed !== undefined) takeBuildOfFrame(framed(el), options, built);
    return undefined;
  }, { nodes: LIMITS.nodes, millis: SCAN_MILLIS });
  built.nodes += seen.nodes;
};

const MOST_SCANNED_FRAMES = 50;
const takeBuildOfFrame = (doc, options, built) => {
  built.iframes += 1;
  if (doc === null) built.opaqueFrames += 1;
  else if (options.frames && built.iframes <= MOST_SCANNED_FRAMES) takeBuild(doc, options, built);
};

const builtPage = (options) => {
  const counts = { button: 0, input: 0, link: 0, form: 0, heading: 0, modalLike: 0 };
  const built = {
    tagOrder: [], landmarks: [], roles: new Set(), counts, links: new Set(), nodes: 0, iframes: 0, opaqueFrames: 0, shadowRoots: 0,
  };
  takeBuild(DOC, options, built);
  const { tagOrder, landmarks, nodes, iframes, opaqueFrames, shadowRoots } = built;
  const links = [...built.links].filter((href) => /^https?:/.test(href) && href.length <= 2048).map((href) => href.toWellFormed());
  const roles = [...built.roles].map((role) => cut(role, 40)).sort();
  return { skeleton: { tagOrder, landmarks, roles, counts }, links, nodes, iframes, opaqueFrames, shadowRoots };
};

const registeredScans = Object.create(null);

// What a scan hands over: blocks of channel, language and text, cut where the caller has enough.
const handedOver = (blocks, most) => {
  const handed = [];
  let left = most;
  for (const [channel, lang, text] of blocks) {
    if (left <= 0) break;
    handed.push([channel, cut(lang, 20), text.slice(0, left).toWellFormed()]);
    left -= text.length + 1;
  }
  return handed;
};

questions.coverageScan = ({ scanId, shadow = true, frames = true, maxChars = 0 }) => {
  const options = { shadow, frames, maxChars };
  return { url: pageAddress(), ...registeredScans[scanId](options), ...builtPage(options) };
};
