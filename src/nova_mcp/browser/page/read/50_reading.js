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
    this.full = false;
  }

  put(text) {
    if (this.length + this.line.length > MAX_TEXT) this.full = true;
    else this.line += text;
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

// Where content can be brought to by scrolling: to the right and down of an edge, which a scrolling box moves with itself.
const pageEdge = (win = WIN) => ({ left: -win.scrollX, top: -win.scrollY, holds: true });
const scrollLeftOf = getter(Element.prototype, "scrollLeft");
const scrollTopOf = getter(Element.prototype, "scrollTop");
const SCROLLING = /auto|scroll/;
const edgeOf = (el, style, outer) => {
  if (!SCROLLING.test(style.overflowX) && !SCROLLING.test(style.overflowY)) {
    return style.position === "static" || outer.holds ? outer : { ...outer, holds: true };
  }
  const tag = tagOf(el);
  if (tag === "body" || tag === "html") return outer;
  const box = boxOf(el);
  const left = style.direction === "rtl" ? -Infinity : box.left - scrollLeftOf(el);
  const top = /reverse$/.test(style.flexDirection) ? -Infinity : box.top - scrollTopOf(el);
  return { left, top, holds: style.position !== "static", outer: outer.outer ?? outer };
};
const offsetParentOf = getter(HTMLElement.prototype, "offsetParent");
// Fixed to the window itself, not to a transformed box that scrolls along with the page.
const standsFast = (el, position) => position === "fixed" && namespaceOf(el) === HTML_NS && offsetParentOf(el) === null;
const beyond = (el, box, position, edge) => {
  if (standsFast(el, position)) return box.right <= 0 || box.bottom <= 0 || box.left >= view.width || box.top >= view.height;
  const within = position === "absolute" && !edge.holds ? edge.outer ?? edge : edge;
  return box.right <= within.left || box.bottom <= within.top || box.left - within.left > 20000;
};

// Drawn so narrow or so low that a line of text becomes a stroke; a box that is merely moved may be empty and overflow.
const MATRIX = /^matrix(3d)?\((.*)\)$/;
const squeezed = (style) => {
  if (style.scale !== "none" && tokensOf(style.scale).some((factor) => Math.abs(parseFloat(factor)) < 0.2)) return true;
  const found = MATRIX.exec(style.transform);
  if (found === null) return false;
  const values = found[2].split(",").map(Number);
  const [across, down] = found[1] ? [values.slice(0, 2), values.slice(4, 6)] : [values.slice(0, 2), values.slice(2, 4)];
  return Math.hypot(...across) < 0.2 || Math.hypot(...down) < 0.2;
};

const hiddenBox = (el, style, edge = null) => {
  if (faded(style) || clippedAway(style)) return true;
  const position = style.position;
  const box = boxOf(el);
  if (style.clipPath !== "none" && insetAway(style, box)) return true;
  const flat = box.width < 3 || box.height < 3;
  if (flat && style.display !== "inline" && style.display !== "contents") {
    if (squeezed(style)) return true;
    if (style.overflowX !== "visible" || style.overflowY !== "visible") return true;
  }
  const placed = position === "absolute" || position === "fixed";
  if (placed && box.width <= 1 && box.height <= 1 && style.overflow !== "visible") return true;
  if (box.width === 0 && box.height === 0) return false;
  return edge === null ? placed && offPage(box) : beyond(el, box, position, edge);
};

// Ink on its own colour is unreadable; known only where nothing positioned or painted lies between text and ground.
const groundOf = (style, outer) => {
  if (style.backgroundImage !== "none") return null;
  if (!isTransparent(style.backgroundColor)) return style.backgroundColor;
  return style.position === "static" ? outer : null;
};

// A box that begins far outside may still reach into the page; its words need not.
const wordsBeyond = (el, edge) => {
  if (boxOf(el).left >= edge.left - 200) return false;
  const range = makeRange(DOC);
  rangeOver(range, el);
  const box = rangeBox(range);
  return box.width > 0 && box.right <= edge.left;
};

// Two colours that nobody tells apart.
const knownColours = new Map();
const colourParts = (colour) => {
  let parts = knownColours.get(colour);
  if (parts === undefined) {
    if (knownColours.size > 500) knownColours.clear();
    const found = /^rgba?\(([^()]*)\)$/.exec(colour);
    knownColours.set(colour, (parts = found === null ? null : found[1].split(/[ ,/]+/).slice(0, 3).map(Number)));
  }
  return parts;
};
const ALIKE = 12;
const lookAlike = (left, right) => {
  if (left === right) return true;
  const [one, other] = [colourParts(left), colourParts(right)];
  return one !== null && other !== null && one.every((value, index) => Math.abs(value - other[index]) <= ALIKE);
};

// An element may be shown while what it holds is not.
const keepsShut = (el, style) => style.contentVisibility === "hidden" || (tagOf(el) === "details" && !detailsOpen(el));

const WHITE = "rgb(255, 255, 255)";
// What an element does to the sight of its text; null where nothing of it is seen.
const sightOf = (el, style, outer) => {
  if (style.display === "none" || (style.display !== "contents" && !checkVisible(el))) return null;
  if (hiddenBox(el, style, outer.edge)) return null;
  const ground = groundOf(style, outer.ground);
  const mute =
    style.visibility !== "visible" || illegible(el, style) || withoutInk(el, style) || keepsShut(el, style) ||
    parseFloat(style.textIndent) < -500 || (ground !== null && lookAlike(inkOf(style), ground)) || wordsBeyond(el, outer.edge);
  return { ground, mute, edge: edgeOf(el, style, outer.edge) };
};

const frameDocuments = new Map([
  ["iframe", getter(HTMLIFrameElement.prototype, "contentDocument")],
  ["frame", getter(HTMLFrameElement.prototype, "contentDocument")],
]);
const windowOf = getter(Document.prototype, "defaultView");

const FIELD_ROLES = new Set(["textbox", "searchbox", "combobox"]);
// An editable page is something to read; what calls itself a text field holds a value.
const isWrittenField = (el) => isEditableHost(el) && FIELD_ROLES.has(explicitRole(el));
const CELL_ROLES = new Set(["cell", "gridcell", "columnheader", "rowheader"]);
const isCell = (el) => {
  const tag = tagOf(el);
  return tag === "td" || tag === "th" || CELL_ROLES.has(explicitRole(el));
};
const isRow = (el, tag) => tag === "tr" || attr(el, "role") === "row";

const MAX_LEVELS = 1000;
const readInto = (sheet, el, context) => {
  const budget = context.budget;
  if (budget.nodes-- <= 0 || now() > budget.deadline || context.level > MAX_LEVELS) {
    budget.truncated = true;
    return;
  }
  const tag = tagOf(el);
  const framed = frameDocuments.get(tag);
  if (framed === undefined && (SKIPPED.has(tag) || (el !== context.root && isWrittenField(el)))) return;
  if (context.skip?.(el)) return;
  const style = styleOf(el);
  const sight = context.hidden ? { ground: null, mute: false, edge: context.edge } : sightOf(el, style, context);
  if (sight === null) return;
  const inner = { ...context, ...sight, style, level: context.level + 1 };
  if (framed !== undefined) readFrame(sheet, el, framed(el), inner);
  else if (el === context.main?.el && el !== context.root) readMain(sheet, el, inner);
  else if (tag === "br") sheet.flush(1);
  else if (tag === "hr") sheet.flush(2);
  else readTag(sheet, el, tag, inner);
};

const readTag = (sheet, el, tag, inner) => {
  const { display } = inner.style;
  const heading = HEADING_TAG.test(tag);
  const block = BLOCK_DISPLAY.test(display) || heading;
  if (block) sheet.flush(heading || tag === "p" || tag === "pre" || tag === "table" ? 2 : 1);
  if (tag === "pre" && !inner.plain) return readPre(sheet, el, inner);
  if (isRow(el, tag) && !inner.plain) return readRow(sheet, el, inner);
  if (!inner.plain && heading) sheet.mark = `${"#".repeat(Number(tag[1]))} `;
  if (!inner.plain && tag === "li") sheet.mark = `${listMark(el, inner)} `;
  const apart = !block && (display.startsWith("inline-") || display === "table-cell");
  if (apart) sheet.put(" ");
  if (!inner.plain && tag === "a" && hasAttribute(el, "href")) readLink(sheet, el, inner);
  else readChildren(sheet, el, tag === "ul" || tag === "ol" ? { ...inner, depth: inner.depth + 1 } : inner);
  if (apart) sheet.put(" ");
  if (block) sheet.flush(heading || tag === "p" ? 2 : 1);
  // An empty heading or item leaves no mark for the text after it.
  if (tag === "li" || heading) sheet.mark = "";
};

// Boxes that lay their children out in an order of their own are read in that order.
const ARRANGES = /(flex|grid)$/;
const childrenOf = (el, style) => {
  const children = composedChildren(el);
  if (!ARRANGES.test(style.display)) return children;
  const list = [...children].map((node) => ({ node, order: isElement(node) ? Number(styleOf(node).order) || 0 : 0 }));
  const backwards = style.display.endsWith("flex") && style.flexDirection.endsWith("-reverse");
  if (!backwards && list.every((item) => item.order === 0)) return list.map((item) => item.node);
  list.sort((left, right) => left.order - right.order);
  return (backwards ? list.reverse() : list).map((item) => item.node);
};

const KEEPS_BREAKS = /^preserve(-breaks)?$/;
const readChildren = (sheet, el, context) => {
  for (const child of childrenOf(el, context.style)) {
    if (isElement(child)) readInto(sheet, child, context);
    else if (isText(child)) readWords(sheet, child, context);
  }
};

const readWords = (sheet, node, context) => {
  if (context.mute) return;
  if (context.budget.counts) context.budget.letters += letters(leaving(dataOf(node), context.hidden));
  readData(sheet, dataOf(node), context.style);
};

const readData = (sheet, data, style) => {
  if (!data.includes("\n") || !KEEPS_BREAKS.test(style.whiteSpaceCollapse)) return sheet.put(data);
  data.split("\n").forEach((line, index) => {
    if (index > 0) sheet.flush(1);
    sheet.put(line);
  });
};

const textWithin = (el, context) => {
  const sheet = new Sheet();
  readChildren(sheet, el, context);
  sheet.flush(1);
  if (sheet.full) context.budget.truncated = true;
  return sheet.text();
};

const readMain = (sheet, el, context) => {
  sheet.flush(2);
  const text = textWithin(el, context);
  context.main.text = text;
  sheet.push(text, 2);
};

const readFrame = (sheet, el, doc, context) => {
  const body = doc === null ? null : documentBody(doc);
  const box = boxOf(el);
  if (body === null || (!context.hidden && (box.width < 8 || box.height < 8))) return;
  sheet.flush(1);
  readInto(sheet, body, { ...context, ground: WHITE, edge: pageEdge(windowOf(doc)), depth: 0 });
  sheet.flush(1);
};

// Cells of one line each stand beside each other; a row that lays out whole blocks is read block by block.
const readRow = (sheet, el, context) => {
  const cells = [];
  for (const child of composedChildren(el)) {
    const cell = new Sheet();
    // A row of a grid may hold words of its own, outside any cell.
    if (isElement(child)) readInto(cell, child, { ...context, depth: 0 });
    else if (isText(child)) readWords(cell, child, context);
    cell.flush(1);
    if (cell.parts.length || (isElement(child) && isCell(child))) cells.push(cell.text());
  }
  if (cells.every((text) => !text.includes("\n"))) sheet.push(cells.join(" | ").replace(/^\s+|[\s|]+$/g, ""), 1);
  else for (const text of cells) sheet.push(text, 1);
};

const rawText = (el, context) => {
  let text = "";
  for (const child of composedChildren(el)) {
    if (isText(child) && !context.mute) {
      if (context.budget.counts) context.budget.letters += letters(leaving(dataOf(child), context.hidden));
      text += dataOf(child);
    }
    if (!isElement(child) || SKIPPED.has(tagOf(child)) || context.level > MAX_LEVELS || context.budget.nodes-- <= 0) continue;
    if (tagOf(child) === "br") text += "\n";
    const style = styleOf(child);
    const sight = context.hidden ? {} : sightOf(child, style, context);
    if (sight === null) continue;
    const part = rawText(child, { ...context, ...sight, level: context.level + 1 });
    text += BLOCK_DISPLAY.test(style.display) && part !== "" && !part.endsWith("\n") ? `${part}\n` : part;
  }
  return text;
};

const readPre = (sheet, el, context) => sheet.push(rawText(el, context).replace(/^\n|\n+$/g, ""), 2);

const listMark = (el, context) => {
  const list = parentNode(el);
  const indent = "  ".repeat(Math.max(0, Math.min(context.depth - 1, 4)));
  if (list === null || !isElement(list) || tagOf(list) !== "ol") return `${indent}-`;
  const counts = context.budget.items;
  let count = counts.get(list);
  if (count === undefined) count = (Number(attr(list, "start") ?? 1) || 1) - 1;
  const own = attr(el, "value");
  count = own !== null && /^-?\d{1,9}$/.test(own.trim()) ? Number(own) : count + 1;
  counts.set(list, count);
  return `${indent}${count}.`;
};

const readLink = (sheet, el, context) => {
  const [start, parts] = [sheet.line.length, sheet.parts.length];
  readChildren(sheet, el, context);
  // A link around whole blocks keeps its text as it was laid out.
  if (sheet.parts.length !== parts) return;
  const [before, text] = [sheet.line.slice(0, start), sheet.line.slice(start)];
  const label = squash(text);
  const href = attr(el, "href").trim();
  const plain = label === "" || /^(javascript:|#|data:)/i.test(href) || href.length > 200;
  sheet.line = before + (plain ? text : `${/^\s/.test(text) ? " " : ""}[${label}](${href})${/\s$/.test(text) ? " " : ""}`);
};

const newBudget = (millis = LIMITS.millis) => ({ nodes: LIMITS.nodes, deadline: now() + millis, truncated: false, items: new Map(), counts: false, letters: 0 });
const topSight = () => ({ ground: WHITE, mute: false, edge: pageEdge() });

// Text as it leaves: controls are never drawn; signs without a shape count as hidden.
const CONTROL_SIGNS = /[\0-\x08\x0B-\x1F\x7F-\x9F]/g;
const leaving = (text, hidden) => {
  const even = text.toWellFormed().replace(CONTROL_SIGNS, "");
  return hidden ? even : drawn(even);
};

// `plain` leaves the marks of headings, lists and links out; `skip` names elements that are not read.
const readElement = (el, { hidden = false, plain = false, budget = newBudget(), main = null, skip = null, known = new Map() } = {}) => {
  const sheet = new Sheet();
  const outer = hidden ? topSight() : sightAround(el, known);
  const context = { hidden, plain, skip, root: el, style: null, main, depth: 0, level: 0, budget };
  if (outer !== null) readInto(sheet, el, { ...outer, ...context });
  sheet.flush(1);
  if (sheet.full) budget.truncated = true;
  return leaving(sheet.text(), hidden);
};

// What everything around an element leaves to be seen of it; null when nothing is.
const sightAround = (el, known = new Map()) => {
  const chain = [];
  let node = composedParent(el);
  while (node !== null && !known.has(node)) {
    chain.push(node);
    node = composedParent(node);
  }
  let sight = node === null ? topSight() : known.get(node);
  for (let i = chain.length - 1; i >= 0; i -= 1) {
    if (sight !== null) sight = sightOf(chain[i], styleOf(chain[i]), sight);
    known.set(chain[i], sight);
  }
  return sight;
};

const mainElement = () => {
  for (const el of queryAll(DOC, "main,[role=main]")) if (rendered(el)) return el;
  return null;
};

const letters = (text) => text.replace(/\s+/g, "").length;

questions.read = ({ scope = "auto", node = null, includeHidden = false, counted = false }) => {
  // `letters` is the page's own text, without the marks that are added to it.
  const budget = { ...newBudget(), counts: counted };
  const page = { url: pageAddress(), title: pageTitle(200), status: documentStatus() };
  const told = (text, scopeUsed) => ({ ...page, text, scopeUsed, scanTruncated: budget.truncated, letters: budget.letters });
  if (node !== null) {
    const el = nodeOf(node);
    if (el === null || !isConnected(el)) return { ...page, gone: true };
    return told(readElement(el, { hidden: includeHidden, budget }), "element");
  }
  const found = scope === "page" ? null : mainElement();
  if (scope === "main" && found !== null) return told(readElement(found, { hidden: includeHidden, budget }), "main");
  const main = { el: found, text: "" };
  const body = documentBody(DOC) ?? documentElement(DOC);
  const whole = body === null ? "" : readElement(body, { hidden: includeHidden, budget, main });
  const useMain = letters(main.text) * 2 >= letters(whole) && letters(main.text) > 0;
  return useMain ? told(leaving(main.text, includeHidden), "main") : told(whole, "page");
};
