// Text that a style sheet puts before or after an element. Asking the style of every element twice more is dear, so the
// sheets are read for rules that write text; only elements such a rule may match are asked.
const sheetsIn = { document: getter(Document.prototype, "styleSheets"), shadow: getter(ShadowRoot.prototype, "styleSheets") };
const adoptedIn = { document: getter(Document.prototype, "adoptedStyleSheets"), shadow: getter(ShadowRoot.prototype, "adoptedStyleSheets") };
const rulesOf = getter(CSSStyleSheet.prototype, "cssRules");
const MOST_RULES = 20000;
const MOST_WRITERS = 300;
const GENERATED = /::?(before|after)\b/i;
// Characters without a meaning of their own, where icon fonts put their pictures.
const PRIVATE = /[\u{e000}-\u{f8ff}\u{f0000}-\u{10ffff}]/gu;

const writesText = (content) => {
  if (content === "" || content === "none" || content === "normal") return false;
  if (/\b(attr|var|counters?|open-quote|close-quote)\b/.test(content)) return true;
  return /[^\s"'/]/u.test(content.replace(/\\[ef][0-9a-f]{3}(?![0-9a-f])/gi, "").replace(PRIVATE, "").replace(/url\([^)]*\)/g, ""));
};

// The elements that carry what the selector means.
const elementsOf = (selector) => selector.replace(/(^|[\s,>+~(])::?(before|after)\b/gi, "$1*").replace(/::?(before|after)\b/gi, "");

const writersOf = (rules, outer, found) => {
  for (const rule of rules) {
    if (++found.seen > MOST_RULES) return;
    const selector = rule.selectorText;
    if (selector === undefined) {
      if (rule.cssRules) writersOf(rule.cssRules, outer, found);
      else if (rule.styleSheet) readSheet(rule.styleSheet, found);
      continue;
    }
    const whole = outer === "" ? selector : selector.includes("&") ? selector.replaceAll("&", `:is(${outer})`) : `:is(${outer}) ${selector}`;
    if (GENERATED.test(whole) && writesText(rule.style.content)) {
      // Looking into the descendants of every element would cost more than the answer is worth.
      if (whole.includes(":has(") || whole.length > 2000) found.closed = true;
      else found.selectors.push(elementsOf(whole));
    }
    if (rule.cssRules && rule.cssRules.length) writersOf(rule.cssRules, whole, found);
  }
};

const readSheet = (sheet, found) => {
  try {
    writersOf(rulesOf(sheet), "", found);
  } catch {
    // A sheet of another origin shows its rules to nobody.
    found.closed = true;
  }
};

const knownSheets = new WeakMap();
const writersIn = (sheet) => {
  let size = -1;
  try {
    size = rulesOf(sheet).length;
  } catch {
    size = -1;
  }
  let known = knownSheets.get(sheet);
  if (known === undefined || known.size !== size) {
    known = { size, selectors: [], closed: false, seen: 0 };
    readSheet(sheet, known);
    knownSheets.set(sheet, known);
  }
  return known;
};

// What can match in one tree: a selector for the elements to ask, and whether some sheet could not be read.
const writersFor = (root) => {
  const kind = nodeType(root) === 9 ? "document" : isShadow(root) ? "shadow" : null;
  if (kind === null) return { css: "", closed: false };
  const selectors = [];
  let closed = false;
  for (const sheet of [...sheetsIn[kind](root), ...adoptedIn[kind](root)]) {
    if (sheet.disabled) continue;
    const found = writersIn(sheet);
    closed ||= found.closed || found.seen > MOST_RULES;
    selectors.push(...found.selectors);
  }
  if (selectors.length > MOST_WRITERS) return { css: "", closed: true };
  // A list that forgives skips what this browser does not understand, instead of refusing all of it.
  const css = selectors.length ? `:is(${selectors.join(",")})` : "";
  try {
    if (css !== "") matches(documentElement(DOC), css);
  } catch {
    return { css: "", closed: true };
  }
  return { css, closed };
};

const treeWriters = new Map();
const forgetWriters = () => treeWriters.clear();
asked.push(forgetWriters);
const mayBeWrittenTo = (el, bare) => {
  const root = rootNode(el);
  let writers = treeWriters.get(root);
  if (writers === undefined) treeWriters.set(root, (writers = writersFor(root)));
  // Where rules cannot be read, only an element without any text can be worth the question.
  if ((writers.closed && bare) || openShadow(el) !== null) return true;
  return writers.css !== "" && matches(el, writers.css);
};

// `content: "x" / "y"` says y; pictures say nothing; counters are not told to scripts. A function may hold strings, and
// those are its own: they are read over with it.
const CONTENT_PART = /"((?:[^"\\]|\\.)*)"|[a-z-]+\((?:[^()"]|"(?:[^"\\]|\\.)*"|\([^()]*\))*\)|\//gis;
const MOST_CONTENT = 4000;
const unescaped = (text) =>
  text.replace(/\\(?:([0-9a-f]{1,6}) ?|(.))/gis, (_, hex, plain) => (hex === undefined ? plain : String.fromCodePoint(parseInt(hex, 16))));
const spokenContent = (content) => {
  if (content === "none" || content === "normal") return "";
  let text = "";
  for (const [part, quoted] of content.slice(0, MOST_CONTENT).matchAll(CONTENT_PART)) {
    if (part === "/") text = "";
    else if (quoted !== undefined) text += unescaped(quoted);
  }
  return text.replace(PRIVATE, "");
};

const generatedText = (el, where) => {
  const style = styleOf(el, where);
  const text = spokenContent(style.content);
  if (text === "" || style.display === "none" || style.visibility !== "visible") return "";
  return style.display === "inline" ? text : ` ${text} `;
};
