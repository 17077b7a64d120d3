// What a contract may ask about this document. A fact answers with its value, with {v, s} when instances of the same
// value must be told apart, or with nothing when it can't be known; a guess is worse than no answer.
const facts = Object.create(null);

// Node numbers begin anew in every document; the tag keeps stamps of two documents apart.
const DOCUMENT_TAG = crypto.getRandomValues(new Uint32Array(1))[0].toString(36);

const hashText = (text) => {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(36);
};

// -- text as a person sees it

const textBudget = (nodesLeft = 4000) => ({ left: nodesLeft, truncated: false });

const gatherShown = (el, ground, budget, parts) => {
  if (budget.left-- <= 0) {
    budget.truncated = true;
    return;
  }
  if (SKIPPED.has(tagOf(el))) return;
  const style = styleOf(el);
  if (style.display === "none" || (style.display !== "contents" && !checkVisible(el)) || hiddenBox(el, style)) return;
  const under = groundOf(style, ground);
  const mute =
    style.visibility !== "visible" || parseFloat(style.fontSize) < 3 || isTransparent(style.color) ||
    parseFloat(style.textIndent) < -500 || (under !== null && style.color === under);
  const apart = style.display !== "inline" && style.display !== "contents";
  if (apart || tagOf(el) === "br") parts.push(" ");
  for (const child of composedChildren(el)) {
    if (isText(child)) {
      if (!mute) parts.push(dataOf(child));
    } else if (isElement(child)) gatherShown(child, under, budget, parts);
  }
  if (apart) parts.push(" ");
};

// The colour a text stands on, as far as it is known, or undefined when something above hides it all.
const groundAbove = (el) => {
  const chain = [];
  for (let node = composedParent(el); node !== null; node = composedParent(node)) chain.push(node);
  let ground = "rgb(255, 255, 255)";
  for (let i = chain.length - 1; i >= 0; i -= 1) {
    if (SKIPPED.has(tagOf(chain[i]))) return undefined;
    const style = styleOf(chain[i]);
    if (style.display === "none" || hiddenBox(chain[i], style)) return undefined;
    ground = groundOf(style, ground);
  }
  return ground;
};

const shownTextOf = (el, budget = textBudget()) => {
  const ground = groundAbove(el);
  if (ground === undefined) return "";
  const parts = [];
  gatherShown(el, ground, budget, parts);
  return squash(parts.join(""));
};

// -- finding

const ROOTS_KEPT_MS = 500;
const shadowRoots = { at: -Infinity, list: [] };
const rootsNow = () => {
  if (now() - shadowRoots.at > ROOTS_KEPT_MS) {
    const list = [];
    walk(DOC, (el) => {
      const shadow = openShadow(el);
      if (shadow !== null && list.length < 200) list.push(shadow);
      return undefined;
    }, { nodes: 50000, millis: 40 });
    shadowRoots.list = list;
    shadowRoots.at = now();
  }
  return shadowRoots.list;
};

// Matches in a part of the page, those in open shadow roots included.
const queryDeep = (scope, css, most = 200) => {
  const found = [];
  const take = (root) => {
    const list = queryAll(root, css);
    for (let i = 0; i < list.length && found.length < most; i += 1) found.push(list[i]);
  };
  take(scope);
  for (const root of rootsNow())
    if (isConnected(root) && (scope === DOC || composedContains(scope, shadowHost(root)))) take(root);
  return found;
};

const seenByEye = (el) => visibleControl(el) || (rendered(el) && opaque(el) && hasVisibleChild(el));

const scopeFor = (css) => {
  const found = select(css);
  return found.find(seenByEye) ?? found[0] ?? null;
};

// -- elements by selector

const CHECKABLE = new Set(["checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio", "option", "tab"]);
const isCheckable = (el) => CHECKABLE.has(roleOf(el)) || hasAttribute(el, "aria-pressed");

const holdsValue = (el) => {
  const tag = tagOf(el);
  return tag === "input" || tag === "textarea" || tag === "select" || isEditableHost(el);
};
const fieldValue = (el) => {
  if (!holdsValue(el)) return null;
  const value = rawValue(el);
  // Exactly as it stands: a value that differs only in its blanks is another one.
  return value !== "" && isSecret(el) ? "•••" : cut(plain(value), 10000);
};

const domFields = {
  exists: (look) => look.list.length > 0,
  visible: (look) => look.shown,
  gone: (look) => !look.shown,
  count: (look) => look.list.length,
  text: (look) => look.text(),
  value: (look) => fieldValue(look.el),
  checked: (look) => (isCheckable(look.el) ? checkedState(look.el) : null),
  enabled: (look) => isDisabled(look.el) === null,
};
const ABSENCE = new Set(["exists", "visible", "gone", "count"]);

const domLook = (css) => {
  const list = select(css);
  const visible = list.find(seenByEye);
  const el = visible ?? list[0] ?? null;
  let text;
  return { list, el, shown: visible !== undefined, text: () => (text ??= el === null ? "" : cut(shownTextOf(el), 500)) };
};

const NO_ELEMENT = { exists: false, visible: false, count: 0, text: null, value: null, checked: null, enabled: null };

// A value that must not leave the page is compared here; only whether it is the same goes out.
const comparedInside = (el, texts) => {
  if (!holdsValue(el) || rawValue(el) === "" || !isSecret(el)) return undefined;
  const value = plain(rawValue(el));
  return texts.map((text) => [text, plain(text) === value]);
};

facts.dom = (_scope, _watch, { css, field, compare = [] }) => {
  const look = domLook(css);
  if (field && !Object.hasOwn(domFields, field)) return undefined;
  if (look.el === null) {
    if (field && !ABSENCE.has(field)) return { e: "fact_not_found" };
    return { v: field ? domFields[field](look) : NO_ELEMENT, s: "" };
  }
  const stamp = `${DOCUMENT_TAG}.${numberOf(look.el)}:${hashText(look.text())}`;
  const masked = !field || field === "value" ? comparedInside(look.el, compare) : undefined;
  if (field) return { v: domFields[field](look), s: stamp, m: masked };
  const value = {};
  for (const name of Object.keys(NO_ELEMENT)) value[name] = domFields[name](look);
  return { v: value, s: stamp, m: masked };
};

// -- the page

facts["page.title"] = () => pageTitle(500);
facts["page.readyState"] = () => readyState(DOC);

const makeTreeWalker = uncurry(Document.prototype.createTreeWalker);
const nextInTree = uncurry(TreeWalker.prototype.nextNode);
const SHOW_TEXT = 4;
const SEARCH = { texts: 150000, holders: 400, millis: 1000, levels: 5, chars: 20000, counted: 50 };

// The smallest element around a piece of text that shows all of what is looked for.
const holderOf = (node, wanted, tried) => {
  let el = composedParent(node);
  for (let level = 0; el !== null && level < SEARCH.levels; level += 1, el = composedParent(el)) {
    if (tried.has(el)) return tried.get(el) ? el : null;
    const length = textContentOf(el).length;
    if (length > SEARCH.chars) return null;
    if (length < wanted.length && level < SEARCH.levels - 1) continue;
    const held = shownTextOf(el).includes(wanted);
    tried.set(el, held);
    if (held) return el;
  }
  return null;
};

const countIn = (text, wanted) => {
  let count = 0;
  for (let at = text.indexOf(wanted); at >= 0 && count < SEARCH.counted; at = text.indexOf(wanted, at + wanted.length)) count += 1;
  return count;
};

const makeRange = uncurry(Document.prototype.createRange);
const rangeOver = uncurry(Range.prototype.selectNodeContents);
const rangeBox = uncurry(Range.prototype.getBoundingClientRect);
const SMALLEST_PX = 3;
// Whether a piece of text lies where a person could come to see it: of some size, on the page, and not under something.
const lies = (node) => {
  const range = makeRange(DOC);
  rangeOver(range, node);
  const box = rangeBox(range);
  if (box.width < SMALLEST_PX || box.height < SMALLEST_PX) return false;
  const root = documentElement(DOC);
  const [left, top] = [box.left + view.x, box.top + view.y];
  const [width, height] = [Math.max(root === null ? 0 : scrollWidthOf(root), view.width), Math.max(root === null ? 0 : scrollHeightOf(root), view.height)];
  if (left + box.width <= 0 || top + box.height <= 0 || left >= width || top >= height) return false;
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  const owner = composedParent(node);
  if (owner === null || x < 0 || y < 0 || x >= view.width || y >= view.height || styleOf(owner).pointerEvents === "none") return true;
  const hit = deepHit(x, y);
  return hit === null || composedContains(owner, hit) || composedContains(hit, owner) || !opaque(hit) || isTransparent(styleOf(hit).backgroundColor);
};
const scrollWidthOf = getter(Element.prototype, "scrollWidth");

// How often a text can be read on the page; null when the page is too big to say.
const timesShown = (scope, wanted) => {
  const word = wanted.split(" ").reduce((best, part) => (part.length > best.length ? part : best), "");
  const deadline = now() + SEARCH.millis;
  const tried = new Map();
  const holders = new Set();
  let texts = 0;
  let hidden = 0;
  for (const root of [scope, ...rootsNow().filter((shadow) => scope === DOC || composedContains(scope, shadowHost(shadow)))]) {
    const tree = makeTreeWalker(DOC, root, SHOW_TEXT);
    for (let node = nextInTree(tree); node !== null; node = nextInTree(tree)) {
      texts += 1;
      if (texts > SEARCH.texts || tried.size > SEARCH.holders || ((texts & 63) === 0 && now() > deadline))
        return holders.size > 0 ? holders.size : null;
      if (!dataOf(node).includes(word)) continue;
      if (!lies(node)) {
        hidden += 1;
        continue;
      }
      const holder = holderOf(node, wanted, tried);
      if (holder !== null) holders.add(holder);
      if (holders.size >= SEARCH.counted) return holders.size;
    }
  }
  if (holders.size > 0) {
    let times = 0;
    for (const holder of holders) times += countIn(shownTextOf(holder), wanted);
    return times;
  }
  // Markup may cut through the middle of a word; only a small page can be read as a whole each time.
  const body = scope === DOC ? documentBody(DOC) ?? documentElement(DOC) : scope;
  if (texts > 3000 || body === null || hidden > 0) return 0;
  const budget = textBudget(8000);
  const times = countIn(shownTextOf(body, budget), wanted);
  return times === 0 && budget.truncated ? null : times;
};

facts["page.shows"] = (scope, _watch, { text }) => {
  const wanted = squash(text ?? "");
  if (wanted === "") return undefined;
  const times = timesShown(scope, wanted);
  return times === null ? undefined : { v: times > 0, s: `${DOCUMENT_TAG}.${times}` };
};

// -- asking for several at once

// While a document is still being read in, what is not there may still come and what is there may still grow: only the
// sight of something counts, and these are the facts that are true by sight.
// A document that is read in for ever is taken as it is, unless it came as an answer to the action.
const LOADING_MS = 3000;
const stillLoading = (watch) => readyState(DOC) === "loading" && (!watch.first || now() < LOADING_MS);
const STEADY = new Set(["page.title", "page.readyState"]);
const trueBySight = new Set(["page.shows"]);
const sureWhileLoading = (ref, found) => {
  if (STEADY.has(ref.name) || found.sure) return true;
  if (ref.name === "dom") return ref.field ? found.v === true && (ref.field === "exists" || ref.field === "visible") : found.v.exists;
  return found.v === true && trueBySight.has(ref.name);
};

const readFact = (ref, watch) => {
  const read = facts[ref.name];
  if (read === undefined) return { e: "fact_not_found" };
  let found;
  try {
    const scope = ref.name === "dom" || !ref.css ? DOC : scopeFor(ref.css);
    if (scope === null) return { e: "fact_not_found" };
    found = read(scope, watch, ref);
  } catch {
    return { e: "fact_unreadable" };
  }
  if (found === undefined) return { e: "fact_unreadable" };
  if (found !== null && typeof found === "object" && Object.hasOwn(found, "e")) return found;
  const stamped = found !== null && typeof found === "object" && Object.hasOwn(found, "v");
  const fact = stamped ? found : { v: found };
  if (stillLoading(watch) && !sureWhileLoading(ref, fact)) return { e: "fact_unreadable" };
  return fact.m === undefined ? { v: fact.v, s: fact.s ?? "" } : { v: fact.v, s: fact.s ?? "", m: fact.m };
};

const readFacts = (refs, watch) => {
  measure();
  forgetLabels();
  removal.meant = watch.base.removes ?? true;
  return refs.map((ref) => readFact(ref, watch));
};
