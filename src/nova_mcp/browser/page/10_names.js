// Roles, accessible names and what a person can see. A working subset of the ARIA rules.
const INPUT_ROLES = {
  button: "button", submit: "button", reset: "button", image: "button", checkbox: "checkbox", radio: "radio",
  range: "slider", number: "spinbutton", search: "searchbox", file: "button", color: "button", hidden: null,
};
const TAG_ROLES = {
  button: "button", textarea: "textbox", option: "option", summary: "button", nav: "navigation", main: "main",
  aside: "complementary", dialog: "dialog", article: "article", h1: "heading", h2: "heading", h3: "heading",
  h4: "heading", h5: "heading", h6: "heading", ul: "list", ol: "list", li: "listitem", table: "table", tr: "row",
  form: "form", fieldset: "group", progress: "progressbar", meter: "meter", output: "status", search: "search",
  img: "img", hr: "separator", menu: "list", details: "group", iframe: "iframe", label: "label",
};
const SECTIONING = new Set(["article", "aside", "main", "nav", "section"]);
const CONTENT_NAMED = new Set([
  "button", "link", "option", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "checkbox", "radio", "switch",
  "heading", "treeitem", "cell", "gridcell", "columnheader", "rowheader", "row", "tooltip", "label",
]);
const INTERACTIVE = new Set([
  "button", "link", "textbox", "searchbox", "checkbox", "radio", "combobox", "listbox", "option", "slider",
  "spinbutton", "switch", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "treeitem",
]);
const CONTROLS = new Set([
  "textbox", "searchbox", "checkbox", "radio", "combobox", "listbox", "slider", "spinbutton", "switch",
]);
const KNOWN_ROLE = /^[a-z]{2,24}$/;

const explicitRole = (el) => {
  const given = attr(el, "role");
  if (!given) return null;
  const first = given.trim().toLowerCase().split(/\s+/)[0];
  return KNOWN_ROLE.test(first) && first !== "presentation" && first !== "none" ? first : null;
};

const isEditableHost = (el) => {
  const given = attr(el, "contenteditable");
  return given !== null && /^(|true|plaintext-only)$/i.test(given);
};

const typeOf = (el) => {
  const tag = tagOf(el);
  return tag === "input" ? inputType(el) : tag === "button" ? buttonType(el) : "";
};

const inputRole = (el) => {
  const type = inputType(el);
  if (type in INPUT_ROLES) return INPUT_ROLES[type];
  return hasAttribute(el, "list") ? "combobox" : "textbox";
};

const roleOf = (el) => {
  const given = explicitRole(el);
  if (given) return given;
  const tag = tagOf(el);
  if (tag === "a" || tag === "area" || tag === "svg:a") return hasAttribute(el, "href") ? "link" : isEditableHost(el) ? "textbox" : "generic";
  if (tag === "input") return inputRole(el) ?? "generic";
  if (tag === "select") return hasAttribute(el, "multiple") || Number(attr(el, "size")) > 1 ? "listbox" : "combobox";
  if (tag === "header" || tag === "footer") {
    const inner = closest(composedParent(el), (node) => SECTIONING.has(tagOf(node)));
    return inner ? "generic" : tag === "header" ? "banner" : "contentinfo";
  }
  if (tag === "section") return attr(el, "aria-label") || attr(el, "aria-labelledby") ? "region" : "generic";
  if (isEditableHost(el)) return "textbox";
  return Object.hasOwn(TAG_ROLES, tag) ? TAG_ROLES[tag] : "generic";
};

// -- what can be seen

const rendered = (el) => checkVisible(el, { visibilityProperty: true, contentVisibilityAuto: false });

const opaque = (el) => checkVisible(el, { opacityProperty: true });

// Ink so faint that nobody reads it counts as none.
const ALPHA = /^rgba\(.*,\s*([\d.]+)\)$|\/\s*([\d.]+)\)$/;
const isTransparent = (color) => {
  if (color === "transparent") return true;
  const found = ALPHA.exec(color);
  return found !== null && Number(found[1] ?? found[2]) < 0.1;
};

const NO_CLIP = new Set(["", "auto", "none"]);
const clippedAway = (style) =>
  (!NO_CLIP.has(style.clip) && /^rect\((0|0px|1px)[, ]+(0|0px|1px)[, ]+(0|0px|1px)[, ]+(0|0px|1px)\)$/.test(style.clip)) ||
  /^inset\((50|100)%\)$/.test(style.clipPath) || /^circle\(0/.test(style.clipPath);

// Window measures are dear to read thousands of times; each question takes them once.
const view = { x: 0, y: 0, width: 0, height: 0 };
const measure = () => {
  [view.x, view.y, view.width, view.height] = [WIN.scrollX, WIN.scrollY, WIN.innerWidth, WIN.innerHeight];
};
asked.push(measure);

const offPage = (box) => box.right + view.x <= 0 || box.bottom + view.y <= 0 || box.left + view.x > 20000;

// Text nobody sees although it is laid out: zero or unreadably small type, transparent ink, clipped or moved away.
const inkless = (el) => {
  const style = styleOf(el);
  return parseFloat(style.fontSize) < 3 || isTransparent(style.color) || parseFloat(style.textIndent) < -500;
};

const CUSTOM_DRAWN = new Set(["checkbox", "radio", "file", "range"]);
const visibleControl = (el) => {
  if (!rendered(el)) return false;
  const box = boxOf(el);
  if (box.width < 1 || box.height < 1) return tagOf(el) === "a" && boxesOf(el).length > 0 && hasVisibleChild(el);
  if (!opaque(el) && !(tagOf(el) === "input" && CUSTOM_DRAWN.has(inputType(el)))) return false;
  if (offPage(box)) return false;
  return !((box.width <= 1 || box.height <= 1) && clippedAway(styleOf(el)));
};

const hasVisibleChild = (el) => {
  for (const child of composedChildren(el)) {
    if (!isElement(child) || !rendered(child)) continue;
    const box = boxOf(child);
    if (box.width >= 1 && box.height >= 1) return true;
  }
  return false;
};

// -- names

const namedText = (el, depth, budget) => {
  const only = firstChild(el);
  if (only !== null && isText(only) && nextSibling(only) === null && openShadow(el) === null) return dataOf(only).slice(0, 400);
  let text = "";
  for (const child of composedChildren(el)) {
    if (budget.left <= 0) break;
    if (isText(child)) {
      text += dataOf(child);
      budget.left -= 1;
      continue;
    }
    if (!isElement(child)) continue;
    budget.left -= 1;
    const tag = tagOf(child);
    if (tag === "script" || tag === "style" || tag === "template" || tag === "noscript") continue;
    if (attr(child, "aria-hidden") === "true" || !rendered(child) || !opaque(child)) continue;
    const style = styleOf(child);
    if (parseFloat(style.fontSize) < 3 || isTransparent(style.color)) continue;
    const own = attr(child, "aria-label") ?? (tag === "img" || tag === "svg:image" ? attr(child, "alt") : null);
    const part = own ?? (tag === "svg:svg" ? svgTitle(child) : depth > 12 ? "" : embedded(child, tag, depth, budget));
    text += style.display === "inline" ? part : ` ${part} `;
    if (text.length > 400) break;
  }
  return text;
};

const embedded = (el, tag, depth, budget) => {
  if (tag === "input" || tag === "textarea" || tag === "select") return "";
  return namedText(el, depth + 1, budget);
};

const svgTitle = (el) => {
  for (let node = firstChild(el); node !== null; node = nextSibling(node))
    if (isElement(node) && localName(node) === "title") return textContentOf(node);
  return "";
};
const textContentOf = getter(Node.prototype, "textContent");

const fromIds = (el, list) => {
  const root = rootNode(el);
  const parts = [];
  for (const id of list.trim().split(/\s+/).slice(0, 5)) {
    const other = idIn(root, id);
    if (other) parts.push(attr(other, "aria-label") ?? namedText(other, 0, { left: 200 }));
  }
  return squash(parts.join(" "));
};

// Asking each control for its labels walks the whole tree every time; one pass over the labels serves them all.
const labelMaps = new Map();
const forgetLabels = () => labelMaps.clear();
asked.push(forgetLabels);
const labelsFor = (el) => {
  if (!LABELABLE.has(tagOf(el))) return [];
  const root = rootNode(el);
  let known = labelMaps.get(root);
  if (known === undefined) {
    labelMaps.set(root, (known = new Map()));
    for (const label of queryAll(root, "label")) {
      const control = labelControl(label);
      if (control !== null) known.set(control, [...(known.get(control) ?? []), label]);
    }
  }
  return known.get(el) ?? [];
};

const labelText = (el) => squash(labelsFor(el).slice(0, 3).map((label) => namedText(label, 0, { left: 200 })).join(" "));

const nameOf = (el, role) => {
  const by = attr(el, "aria-labelledby");
  if (by) {
    const text = fromIds(el, by);
    if (text) return cut(text, 200);
  }
  const label = attr(el, "aria-label");
  if (label && squash(label)) return cut(squash(label), 200);
  const tag = tagOf(el);
  if (tag === "input") {
    const type = inputType(el);
    if (type === "submit" || type === "button" || type === "reset") {
      const value = inputValue(el) || (type === "submit" ? "Submit" : type === "reset" ? "Reset" : "");
      if (value) return cut(squash(value), 200);
    }
    if (type === "image" && attr(el, "alt")) return cut(squash(attr(el, "alt")), 200);
  }
  const fromLabel = labelText(el);
  if (fromLabel) return cut(fromLabel, 200);
  if (tag === "img" || tag === "area") {
    const alt = attr(el, "alt");
    if (alt) return cut(squash(alt), 200);
  }
  if (CONTENT_NAMED.has(role) || tag === "button" || tag === "summary") {
    const text = squash(namedText(el, 0, { left: 200 }));
    if (text) return cut(text, 200);
  }
  return cut(squash(attr(el, "title") || attr(el, "placeholder") || attr(el, "alt") || ""), 200);
};
