// The page as a person reads it: rendered text in order, with light Markdown; field values stay out.
const SKIPPED = new Set([
  "script", "style", "template", "noscript", "head", "input", "textarea", "select", "datalist", "iframe", "object",
  "embed", "canvas", "audio", "video", "svg:svg", "meter", "progress",
]);
const BLOCK_DISPLAY = /^(block|flex|grid|list-item|table|table-row|table-caption|table-row-group|table-header-group|flow-root)$/;
const MAX_TEXT = 5200000;

class Sheet {
  constructor() {
    this.parts = [];
    this.length = 0;
    this.line = "";
    this.mark = "";
    this.pendingBreaks = 0;
  }

  put(text) {
    if (this.length + this.line.length > MAX_TEXT) return;
    this.line += text;
  }

  flush(breaks) {
    const text = this.line.replace(/[ \t\r\n\f]+/g, " ").trim();
    this.line = "";
    this.push(text, breaks);
  }

  push(text, breaks) {
    if (text !== "") {
      const marked = this.mark + text;
      this.mark = "";
      if (this.parts.length) this.parts.push("\n".repeat(Math.max(1, Math.min(2, this.pendingBreaks))));
      this.parts.push(marked);
      this.length += marked.length + 1;
      this.pendingBreaks = breaks;
    } else this.pendingBreaks = Math.max(this.pendingBreaks, breaks);
  }

  text() {
    return this.parts.join("");
  }
}

// The many ways to keep text in a page and out of sight.
const FADED = /opacity\((?:0(?:\.0\d*)?|[0-4](?:\.\d+)?%)\)/;
const NO_AREA = /^polygon\((?:(?:evenodd|nonzero),\s*)?(\S+ \S+)(?:,\s*\1)*\)$/;
const NO_MASK = /^linear-gradient\((?:[^,()]*,\s*)?(?:rgba\(0, 0, 0, 0\)(?: [\d.]+%)?(?:,\s*)?)+\)$/;
const faded = (style) =>
  parseFloat(style.opacity) < 0.05 || FADED.test(style.filter) || NO_AREA.test(style.clipPath) ||
  NO_MASK.test(style.maskImage || "");

const hiddenBox = (el, style) => {
  if (faded(style) || clippedAway(style)) return true;
  const position = style.position;
  const box = boxOf(el);
  const flat = box.width === 0 || box.height === 0;
  if (flat && style.display !== "inline" && style.display !== "contents") {
    if (style.transform !== "none" || style.scale !== "none") return true;
    if (style.overflowX !== "visible" || style.overflowY !== "visible") return true;
  }
  if (position !== "absolute" && position !== "fixed") return false;
  if (box.width <= 1 && box.height <= 1 && style.overflow !== "visible") return true;
  return (box.width > 0 || box.height > 0) && offPage(box);
};

// Ink on its own colour is unreadable; known only where nothing positioned or painted lies between text and ground.
const groundOf = (style, outer) => {
  if (style.backgroundImage !== "none") return null;
  if (!isTransparent(style.backgroundColor)) return style.backgroundColor;
  return style.position === "static" ? outer : null;
};

const readInto = (sheet, el, context) => {
  if (context.budget.nodes-- <= 0 || now() > context.budget.deadline) {
    context.budget.truncated = true;
    return;
  }
  const tag = tagOf(el);
  if (SKIPPED.has(tag)) return;
  const style = styleOf(el);
  if (!context.hidden) {
    if (style.display === "none" || (style.display !== "contents" && !checkVisible(el))) return;
    if (hiddenBox(el, style)) return;
  }
  const ground = groundOf(style, context.ground);
  const mute =
    !context.hidden &&
    (style.visibility !== "visible" || parseFloat(style.fontSize) < 3 || isTransparent(style.color) ||
      parseFloat(style.textIndent) < -500 || (ground !== null && style.color === ground));
  const block = BLOCK_DISPLAY.test(style.display) || HEADING_TAG.test(tag);
  const inner = { ...context, ground, mute, pre: tag === "pre" || (context.pre && tag !== "p") };
  if (tag === "br") {
    sheet.flush(1);
    return;
  }
  if (tag === "hr") {
    sheet.flush(2);
    return;
  }
  if (block) sheet.flush(HEADING_TAG.test(tag) || tag === "p" || tag === "pre" || tag === "table" ? 2 : 1);
  if (tag === "pre") return readPre(sheet, el, mute);
  if (HEADING_TAG.test(tag)) sheet.mark = `${"#".repeat(Number(tag[1]))} `;
  if (tag === "li") sheet.mark = `${listMark(el, context)} `;
  if (tag === "a" && hasAttribute(el, "href")) readLink(sheet, el, inner);
  else readChildren(sheet, el, tag === "ul" || tag === "ol" ? { ...inner, depth: context.depth + 1 } : inner);
  if (tag === "td" || tag === "th") sheet.put(" | ");
  if (tag === "tr") sheet.line = sheet.line.replace(/[\s|]+$/, "");
  if (block) sheet.flush(HEADING_TAG.test(tag) || tag === "p" ? 2 : 1);
  // An empty heading or item leaves no mark for the text after it.
  if (tag === "li" || HEADING_TAG.test(tag)) sheet.mark = "";
};

const readChildren = (sheet, el, context) => {
  for (const child of composedChildren(el)) {
    if (isText(child)) {
      if (!context.mute) sheet.put(dataOf(child));
    } else if (isElement(child)) readInto(sheet, child, context);
  }
};

const readPre = (sheet, el, mute) => {
  if (!mute) sheet.push(innerTextOf(el).replace(/\n+$/, ""), 2);
};

const listMark = (el, context) => {
  const list = parentNode(el);
  const indent = "  ".repeat(Math.max(0, Math.min(context.depth - 1, 4)));
  if (list === null || !isElement(list) || tagOf(list) !== "ol") return `${indent}-`;
  let index = Number(attr(list, "start") ?? 1) || 1;
  for (let node = firstChild(list); node !== null && node !== el; node = nextSibling(node))
    if (isElement(node) && tagOf(node) === "li") index += 1;
  return `${indent}${index}.`;
};

const readLink = (sheet, el, context) => {
  const before = sheet.line;
  const [parts, length] = [sheet.parts.length, sheet.length];
  sheet.line = "";
  readChildren(sheet, el, context);
  const text = sheet.line;
  // A link around whole blocks keeps its text as it was laid out.
  if (sheet.parts.length !== parts || sheet.length !== length) {
    sheet.line = text;
    return;
  }
  const label = squash(text);
  const href = attr(el, "href");
  const plain = label === "" || /^(javascript:|#|data:)/i.test(href) || href.length > 200;
  sheet.line = before + (plain ? text : `${/^\s/.test(text) ? " " : ""}[${label}](${href})${/\s$/.test(text) ? " " : ""}`);
};

const readElement = (el, hidden, budget) => {
  const sheet = new Sheet();
  readInto(sheet, el, { hidden, ground: "rgb(255, 255, 255)", mute: false, pre: false, depth: 0, budget });
  sheet.flush(1);
  return sheet.text().toWellFormed();
};

const mainElement = () => {
  for (const el of queryAll(DOC, "main,[role=main]")) if (rendered(el)) return el;
  return null;
};

const letters = (text) => text.replace(/\s+/g, "").length;

questions.read = ({ scope = "auto", node = null, includeHidden = false }) => {
  const budget = { nodes: LIMITS.nodes, deadline: now() + 3000, truncated: false };
  const body = documentBody(DOC) ?? documentElement(DOC);
  const page = { url: WIN.location.href, title: cut(squash(documentTitle(DOC)), 200) };
  if (node !== null) {
    const el = nodeOf(node);
    if (el === null || !isConnected(el)) return { ...page, gone: true };
    return { ...page, text: readElement(el, includeHidden, budget), scopeUsed: "element", scanTruncated: budget.truncated };
  }
  const main = scope === "page" ? null : mainElement();
  const mainText = main === null ? null : readElement(main, includeHidden, { ...budget });
  if (scope === "main" && mainText !== null) return { ...page, text: mainText, scopeUsed: "main", scanTruncated: budget.truncated };
  const whole = body === null ? "" : readElement(body, includeHidden, budget);
  const useMain = mainText !== null && letters(mainText) * 2 >= letters(whole) && letters(whole) > 0;
  return { ...page, text: useMain ? mainText : whole, scopeUsed: useMain ? "main" : "page", scanTruncated: budget.truncated };
};
