// While a picture is taken: what must not be in it is covered, what should stand out is marked.
const COVERED_CSS = 'input[type=password],input[autocomplete~="one-time-code"],input[autocomplete^="cc-"]';
const COVER_RULES = [
  ["color", "transparent"], ["-webkit-text-fill-color", "transparent"], ["-webkit-text-security", "none"], ["background", "#777"],
  ["text-shadow", "none"], ["caret-color", "transparent"], ["transition", "none"], ["animation", "none"],
];
const COVER_SHEET_TEXT = `${COVERED_CSS}{${COVER_RULES.map(([name, value]) => `${name}:${value}!important`).join(";")}}`;
const sheetsOn = {
  document: Object.getOwnPropertyDescriptor(Document.prototype, "adoptedStyleSheets"),
  shadow: Object.getOwnPropertyDescriptor(ShadowRoot.prototype, "adoptedStyleSheets"),
};
const sheetsOf = (root) => (isShadow(root) ? sheetsOn.shadow : sheetsOn.document);
const styleOfHtml = getter(HTMLElement.prototype, "style");
const styleOfSvg = getter(SVGElement.prototype, "style");
const inlineStyle = (el) => (namespaceOf(el) === HTML_NS ? styleOfHtml(el) : el instanceof SVGElement ? styleOfSvg(el) : null);
const setRule = uncurry(CSSStyleDeclaration.prototype.setProperty);
const dropRule = uncurry(CSSStyleDeclaration.prototype.removeProperty);
const ruleValue = uncurry(CSSStyleDeclaration.prototype.getPropertyValue);
const rulePriority = uncurry(CSSStyleDeclaration.prototype.getPropertyPriority);
const setSheetText = uncurry(CSSStyleSheet.prototype.replaceSync);
const setAttribute = uncurry(Element.prototype.setAttribute);
const removeAttribute = uncurry(Element.prototype.removeAttribute);
const attachShadow = uncurry(Element.prototype.attachShadow);
const append = uncurry(Node.prototype.appendChild);
const removeNode = uncurry(Element.prototype.remove);
const makeElement = uncurry(Document.prototype.createElement);
const showInTopLayer = uncurry(HTMLElement.prototype.showPopover);

let cover = null;

const openRoots = function* (root) {
  yield root;
  for (const el of queryAll(root, "*")) {
    const inner = openShadow(el);
    if (inner !== null) yield* openRoots(inner);
  }
};

// The smallest elements that show a text, also where markup cuts through the middle of it.
const smallestWith = (root, text, found) => {
  const start = isElement(root) ? root : null;
  let deeper = false;
  for (let child = firstChild(root); child !== null; child = nextSibling(child)) {
    if (!isElement(child) || IGNORED.has(tagOf(child)) || !textContentOf(child).includes(text)) continue;
    deeper = true;
    smallestWith(child, text, found);
  }
  if (!deeper && start !== null) found.add(tagOf(start) === "option" ? closest(start, (node) => tagOf(node) === "select") ?? start : start);
};

const mustCover = (el) => {
  if (matches(el, COVERED_CSS) || isSecret(el)) return true;
  if (cover.secrets.length === 0 || !holdsValue(el)) return false;
  const value = rawValue(el);
  return cover.secrets.some((secret) => value.includes(secret));
};

const coverElement = (el, inner = false) => {
  if (cover.done.has(el)) return;
  cover.done.add(el);
  if (!inner) cover.count += 1;
  const style = inlineStyle(el);
  if (style === null || (matches(el, COVERED_CSS) && styleOf(el).webkitTextFillColor === "rgba(0, 0, 0, 0)")) return;
  if (!hasAttribute(el, "style")) cover.bare.push(el);
  for (const [name, value] of COVER_RULES) {
    cover.inline.push([style, name, ruleValue(style, name), rulePriority(style, name)]);
    setRule(style, name, value, "important");
  }
};

const coverRoot = (root) => {
  if (!cover.roots.has(root)) {
    cover.roots.add(root);
    const sheets = sheetsOf(root);
    if (fragmentOrDocumentHas(root, COVERED_CSS)) sheets.set.call(root, [...sheets.get.call(root), cover.sheet]);
    cover.watcher.observe(root, { childList: true, subtree: true, characterData: true });
  }
  for (const el of queryAll(root, "input,textarea,select,[contenteditable]")) if (mustCover(el)) coverElement(el);
  const shown = new Set();
  const top = isShadow(root) ? root : documentElement(DOC);
  for (const secret of cover.secrets) if (top !== null && textContentOf(top).includes(secret)) smallestWith(top, secret, shown);
  for (const el of shown) {
    coverElement(el);
    for (const inner of elementAll(el, "*")) coverElement(inner, true);
  }
};
const fragmentOrDocumentHas = (root, css) => queryAll(root, css).length > 0;

// A page that builds a field anew while the picture is taken must not uncover it: what comes is looked at before it is
// painted.
const coverAll = () => {
  for (const root of openRoots(DOC)) coverRoot(root);
};

// Whatever a secret field holds now is looked for elsewhere too: a page may show beside it what is being typed.
const knownSecrets = (told) => {
  for (const root of openRoots(DOC)) for (const el of queryAll(root, "input")) isSecret(el);
  return [...new Set([...told, ...secretValues])];
};

questions.cover = ({ secrets: told }) => {
  questions.uncover({});
  const secrets = knownSecrets(told);
  const sheet = new CSSStyleSheet();
  setSheetText(sheet, COVER_SHEET_TEXT);
  cover = { secrets, sheet, roots: new Set(), done: new Set(), inline: [], bare: [], count: 0, watcher: new MutationObserver(coverAll) };
  coverAll();
  return cover.count;
};

questions.uncover = () => {
  if (cover === null) return 0;
  const { watcher, roots, sheet, inline, bare, count } = cover;
  cover = null;
  watcher.disconnect();
  for (const root of roots) {
    const sheets = sheetsOf(root);
    const before = [...sheets.get.call(root)];
    if (before.includes(sheet)) sheets.set.call(root, before.filter((one) => one !== sheet));
  }
  for (const [style, name, value, priority] of inline.reverse()) {
    dropRule(style, name);
    if (value) setRule(style, name, value, priority);
  }
  for (const el of bare) if (attr(el, "style") === "") removeAttribute(el, "style");
  return count;
};

// -- marks

const MARK_COLOURS = ["#d6006c", "#0057d9", "#007a3d", "#b35300", "#6a00d9"];
let markHost = null;

const markBox = (box, label, colour) => {
  const frameBox = makeElement(DOC, "div");
  const left = box.left + WIN.scrollX, top = box.top + WIN.scrollY;
  setAttribute(frameBox, "style", `all:initial;position:absolute;box-sizing:border-box;left:${left}px;top:${top}px;width:${box.width}px;height:${box.height}px;border:2px solid ${colour};border-radius:2px`);
  if (label !== "") {
    const chip = makeElement(DOC, "div");
    const above = top >= 15 ? "bottom:100%" : "top:0";
    setAttribute(chip, "style", `all:initial;position:absolute;left:-2px;${above};padding:0 3px;background:${colour};color:#fff;font:bold 11px/14px sans-serif;white-space:nowrap`);
    append(chip, DOC.createTextNode(label));
    append(frameBox, chip);
  }
  return frameBox;
};

// A page can see that an element comes and goes, but neither what is in it nor anything about the marked elements.
questions.mark = ({ wanted }) => {
  questions.unmark({});
  const root = documentElement(DOC);
  if (root === null) return 0;
  const host = makeElement(DOC, "div");
  setAttribute(host, "style", "all:initial!important;position:absolute!important;inset:0 auto auto 0!important;width:0!important;height:0!important;overflow:visible!important;pointer-events:none!important;z-index:2147483647!important");
  setAttribute(host, "popover", "manual");
  const inside = attachShadow(host, { mode: "closed" });
  let count = 0;
  for (const [number, label] of wanted) {
    const el = nodeOf(number);
    if (el === null || !isConnected(el) || !rendered(el)) continue;
    const box = boxOf(el);
    if (box.width < 1 || box.height < 1) continue;
    append(inside, markBox(box, label, MARK_COLOURS[count % MARK_COLOURS.length]));
    count += 1;
  }
  append(root, host);
  markHost = host;
  try {
    showInTopLayer(host);
  } catch {
    // Above everything but dialogs is where it stands without.
  }
  return count;
};

questions.unmark = () => {
  if (markHost !== null) removeNode(markHost);
  markHost = null;
  return null;
};
