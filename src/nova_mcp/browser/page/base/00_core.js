// Page script cannot reach this world, but named form fields and images shadow DOM properties here too. Every read of
// an element therefore goes through a getter or method captured from its prototype.
const uncurry = (method) => Function.prototype.call.bind(method);
const getter = (proto, name) => uncurry(Object.getOwnPropertyDescriptor(proto, name).get);

const DOC = document;
const WIN = window;
const now = performance.now.bind(performance);
const later = WIN.setTimeout.bind(WIN);
const never = WIN.clearTimeout.bind(WIN);
const frame = WIN.requestAnimationFrame.bind(WIN);
const styleOf = WIN.getComputedStyle.bind(WIN);

const nodeType = getter(Node.prototype, "nodeType");
const parentNode = getter(Node.prototype, "parentNode");
const firstChild = getter(Node.prototype, "firstChild");
const nextSibling = getter(Node.prototype, "nextSibling");
const isConnected = getter(Node.prototype, "isConnected");
const contains = uncurry(Node.prototype.contains);
const ownerDocument = getter(Node.prototype, "ownerDocument");
const rootNode = uncurry(Node.prototype.getRootNode);
const comparePosition = uncurry(Node.prototype.compareDocumentPosition);
const dataOf = getter(CharacterData.prototype, "data");
const localName = getter(Element.prototype, "localName");
const getAttribute = uncurry(Element.prototype.getAttribute);
const hasAttribute = uncurry(Element.prototype.hasAttribute);
const matches = uncurry(Element.prototype.matches);
const openShadow = getter(Element.prototype, "shadowRoot");
const assignedSlot = getter(Element.prototype, "assignedSlot");
const slotted = uncurry(HTMLSlotElement.prototype.assignedNodes);
const shadowHost = getter(ShadowRoot.prototype, "host");
const boxOf = uncurry(Element.prototype.getBoundingClientRect);
const boxesOf = uncurry(Element.prototype.getClientRects);
const checkVisible = uncurry(Element.prototype.checkVisibility);
const scrollIntoView = uncurry(Element.prototype.scrollIntoView);
const listen = uncurry(EventTarget.prototype.addEventListener);
const fire = uncurry(EventTarget.prototype.dispatchEvent);

const documentElement = getter(Document.prototype, "documentElement");
const documentTitle = getter(Document.prototype, "title");
const documentBody = getter(Document.prototype, "body");
const readyState = getter(Document.prototype, "readyState");
const documentAll = uncurry(Document.prototype.querySelectorAll);
const fragmentAll = uncurry(DocumentFragment.prototype.querySelectorAll);
const elementAll = uncurry(Element.prototype.querySelectorAll);
const documentPoint = uncurry(Document.prototype.elementFromPoint);
const shadowPoint = uncurry(ShadowRoot.prototype.elementFromPoint);
const documentActive = getter(Document.prototype, "activeElement");
const shadowActive = getter(ShadowRoot.prototype, "activeElement");
const byId = uncurry(Document.prototype.getElementById);
const fragmentById = uncurry(DocumentFragment.prototype.getElementById);

const inputValue = getter(HTMLInputElement.prototype, "value");
const inputChecked = getter(HTMLInputElement.prototype, "checked");
const inputType = getter(HTMLInputElement.prototype, "type");
const areaValue = getter(HTMLTextAreaElement.prototype, "value");
const selectValue = getter(HTMLSelectElement.prototype, "value");
const selectOptions = getter(HTMLSelectElement.prototype, "selectedOptions");
const optionText = getter(HTMLOptionElement.prototype, "text");
const buttonType = getter(HTMLButtonElement.prototype, "type");
const detailsOpen = getter(HTMLDetailsElement.prototype, "open");
const anchorHref = getter(HTMLAnchorElement.prototype, "href");
const controlForms = new Map([
  ["input", getter(HTMLInputElement.prototype, "form")],
  ["button", getter(HTMLButtonElement.prototype, "form")],
  ["select", getter(HTMLSelectElement.prototype, "form")],
  ["textarea", getter(HTMLTextAreaElement.prototype, "form")],
]);
const LABELABLE = new Set(["input", "button", "select", "textarea", "meter", "progress", "output"]);
const formElements = getter(HTMLFormElement.prototype, "elements");
const labelControl = getter(HTMLLabelElement.prototype, "control");
const allByTag = uncurry(Document.prototype.getElementsByTagName);

const LIMITS = { nodes: 200000, elements: 5000, millis: 1500 };
const HTML_NS = "http://www.w3.org/1999/xhtml";
const namespaceOf = getter(Element.prototype, "namespaceURI");

const isElement = (node) => node !== null && nodeType(node) === 1;
const isText = (node) => nodeType(node) === 3;
// SVG and MathML elements may carry the same local names as HTML ones without their getters.
const tagOf = (el) => (namespaceOf(el) === HTML_NS ? localName(el) : `svg:${localName(el)}`);
const attr = (el, name) => getAttribute(el, name);
const isShadow = (node) => nodeType(node) === 11 && node instanceof ShadowRoot;

// The composed parent: slot, then host, then plain parent.
const composedParent = (node) => {
  if (isElement(node) || isText(node)) {
    const slot = isElement(node) ? assignedSlot(node) : null;
    if (slot) return slot;
  }
  const up = parentNode(node);
  if (up === null) return null;
  return isShadow(up) ? shadowHost(up) : isElement(up) ? up : null;
};

const composedChildren = function* (el) {
  const shadow = openShadow(el);
  if (shadow === null && tagOf(el) === "slot") {
    const given = slotted(el);
    if (given.length) {
      yield* given;
      return;
    }
  }
  for (let node = firstChild(shadow ?? el); node !== null; node = nextSibling(node)) yield node;
};

const closest = (el, test) => {
  for (let node = el; node !== null; node = composedParent(node)) if (test(node)) return node;
  return null;
};

const composedContains = (outer, inner) => closest(inner, (node) => node === outer) !== null;

const queryAll = (root, css) =>
  nodeType(root) === 9 ? documentAll(root, css) : nodeType(root) === 11 ? fragmentAll(root, css) : elementAll(root, css);

const idIn = (root, id) => (nodeType(root) === 9 ? byId(root, id) : isShadow(root) ? fragmentById(root, id) : null);

// Signs that no font draws but that spell words to a machine: tags, and variants heaped on one another.
const UNDRAWN = /[\u{E0000}-\u{E0FFF}]|[\uFE00-\uFE0F]{2,}/gu;
const drawn = (text) => text.replace(UNDRAWN, "");

// Half a surrogate pair cannot be encoded on its way out, so no text leaves here ill-formed.
const squash = (text) => drawn(text.toWellFormed()).replace(/\s+/gu, " ").trim();

const cut = (text, limit) => (text.length <= limit ? text.toWellFormed() : `${text.slice(0, limit - 1).toWellFormed()}…`);

// A title or an address may have millions of characters: the rest is dropped before anything is done with it.
const MOST_ADDRESS = 8192;
const pageTitle = (limit) => cut(squash(documentTitle(DOC).slice(0, 4 * limit)), limit);
const pageAddress = () => WIN.location.href.slice(0, MOST_ADDRESS).toWellFormed();

// Numbers stand for nodes between questions; they mean nothing outside this document.
const numbers = new WeakMap();
const nodes = new Map();
let lastNumber = 0;
const numberOf = (el) => {
  let number = numbers.get(el);
  if (number === undefined) {
    number = ++lastNumber;
    numbers.set(el, number);
    nodes.set(number, new WeakRef(el));
    if (nodes.size > 40000) for (const [key, held] of nodes) if (held.deref() === undefined) nodes.delete(key);
  }
  return number;
};
const nodeOf = (number) => nodes.get(number)?.deref() ?? null;

// The last line of defence against strings that a question forgot to cut; nothing longer leaves the page, except where
// a text was asked for, or a whole answer is sent as one text.
const MOST_STRING = 20000;
const LONG_ANSWERS = new Set([
  "read", "search", "searchRuns", "searchHits", "summary", "tables", "knowledgeLook", "knowledgeElements", "coverageScan",
]);
const isPlain = (value) => Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
const bounded = (value, depth = 0) => {
  if (typeof value === "string") return value.length > MOST_STRING ? cut(value, MOST_STRING) : value;
  if (value === null || typeof value !== "object" || depth > 12 || !isPlain(value)) return value;
  for (const key in value) {
    const item = value[key];
    if (typeof item === "number") continue;
    const kept = bounded(item, depth + 1);
    if (kept !== item) value[key] = kept;
  }
  return value;
};

const questions = Object.create(null);
let lastAsked = 0;
const asked = [];
const ask = (question, args) => {
  const answer = questions[question];
  if (!answer) throw new Error(`unknown question ${question}`);
  lastAsked = now();
  for (const hook of asked) hook();
  const told = answer(args ?? {});
  if (LONG_ANSWERS.has(question)) return told;
  return told instanceof Promise ? told.then((value) => bounded(value)) : bounded(told);
};

// A question about an element that only the host can point at: the one that holds a frame.
const about = (el, question, args) => (ownerDocument(el) === DOC ? ask(question, { ...args, el }) : null);

// Room for what the page tells unasked: at most 50 messages a second, counted here so that a busy tab cannot crowd out
// the others.
let sentSecond = -1;
let sentCount = 0;
const tell = (kind, fields) => {
  const second = Math.floor(now() / 1000);
  if (second !== sentSecond) [sentSecond, sentCount] = [second, 0];
  if (++sentCount > 50 || typeof globalThis.__novaSend !== "function") return false;
  globalThis.__novaSend(JSON.stringify({ v: 1, kind, ...fields }));
  return true;
};

Object.defineProperty(globalThis, "__nova", { value: Object.freeze({ v: 1, ask, about, questions, tell }) });
