// Roles: what the author declares where ARIA allows it, else what the HTML and SVG mappings give.
const tokensOf = (text) => text.trim().split(/\s+/);
const ARIA_ROLES = new Set(tokensOf(
  "alert alertdialog application article banner blockquote button caption cell checkbox code columnheader combobox comment " +
  "complementary contentinfo definition deletion dialog document emphasis feed figure form generic grid gridcell group " +
  "heading img insertion link list listbox listitem log main mark marquee math menu menubar menuitem menuitemcheckbox " +
  "menuitemradio meter navigation none note option paragraph progressbar radio radiogroup region row rowgroup rowheader " +
  "scrollbar search searchbox sectionfooter sectionheader separator slider spinbutton status strong subscript suggestion " +
  "superscript switch tab table tablist tabpanel term textbox time timer toolbar tooltip tree treegrid treeitem"));
const ROLE_SYNONYMS = new Map([["image", "img"], ["presentation", "none"], ["directory", "list"]]);
const CONTENT_NAMED = new Set(tokensOf(
  "button cell checkbox columnheader comment gridcell heading label link menuitem menuitemcheckbox menuitemradio option " +
  "radio row rowheader switch tab tooltip treeitem"));
const INTERACTIVE = new Set([
  "button", "link", "textbox", "searchbox", "checkbox", "radio", "combobox", "listbox", "option", "slider",
  "spinbutton", "switch", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "treeitem",
]);
const CONTROLS = new Set([
  "textbox", "searchbox", "checkbox", "radio", "combobox", "listbox", "slider", "spinbutton", "switch",
]);
// Roles of mere text: an element made to be pressed hides behind them.
const PLAIN_ROLES = new Set(tokensOf(
  "generic none paragraph code deletion insertion emphasis strong mark subscript superscript time term definition " +
  "blockquote figure caption cell gridcell columnheader rowheader rowgroup math"));

const INPUT_ROLES = new Map(Object.entries({
  button: "button", submit: "button", reset: "button", image: "button", checkbox: "checkbox", radio: "radio",
  range: "slider", number: "spinbutton", search: "searchbox", file: "button", color: "button", hidden: "generic",
}));
const LISTED_INPUTS = new Set(["text", "search", "tel", "url", "email"]);

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
  if (hasAttribute(el, "list") && LISTED_INPUTS.has(type)) return "combobox";
  return INPUT_ROLES.get(type) ?? "textbox";
};

// -- what an author may take away or claim

const GLOBAL_ARIA = tokensOf(
  "aria-atomic aria-busy aria-controls aria-current aria-describedby aria-description aria-details aria-dropeffect " +
  "aria-flowto aria-grabbed aria-keyshortcuts aria-label aria-labelledby aria-live aria-owns aria-relevant " +
  "aria-roledescription");
const FOCUSABLE = "a[href],area[href],button:enabled,input:enabled:not([type=hidden]),select:enabled,textarea:enabled,summary,iframe,[tabindex],[contenteditable]:not([contenteditable=false i])";
// An element that can be focused, or says more about itself, cannot be taken out of sight by a role.
const keepsItsRole = (el) => matches(el, FOCUSABLE) || GLOBAL_ARIA.some((name) => hasAttribute(el, name));

const saysSomething = (el, name) => /\S/.test(attr(el, name) ?? "");
const pointsSomewhere = (el) => {
  const list = attr(el, "aria-labelledby");
  return list !== null && tokensOf(list).some((id) => id !== "" && idIn(rootNode(el), id) !== null);
};
const namedByAuthor = (el) => saysSomething(el, "aria-label") || pointsSomewhere(el) || saysSomething(el, "title");

const NAME_REQUIRED = new Set(["form", "region"]);
const explicitRole = (el) => {
  const given = attr(el, "role");
  if (!given) return null;
  for (const token of tokensOf(given.slice(0, 300).toLowerCase())) {
    const role = ROLE_SYNONYMS.get(token) ?? token;
    if (!ARIA_ROLES.has(role) || (NAME_REQUIRED.has(role) && !namedByAuthor(el))) continue;
    if (role === "none" && keepsItsRole(el)) return null;
    return role;
  }
  return null;
};

// -- what the markup means by itself

const SECTIONING = new Set(["article", "aside", "main", "nav", "section"]);
const SECTION_ROLES = new Set(["article", "complementary", "main", "navigation", "region"]);
const insideSection = (el, tags) =>
  closest(composedParent(el), (node) => {
    const given = explicitRole(node);
    return given === null ? tags.has(tagOf(node)) : SECTION_ROLES.has(given);
  }) !== null;

const LIST_TAGS = new Set(["ul", "ol", "menu", "dir"]);
const isListItem = (el) => {
  for (let node = composedParent(el); node !== null; node = composedParent(node)) {
    const given = explicitRole(node);
    if (given === "list" || (given === null && LIST_TAGS.has(tagOf(node)))) return true;
    if (given === null ? tagOf(node) !== "div" && tagOf(node) !== "slot" : given !== "none" && given !== "generic") return false;
    if (LIST_TAGS.has(tagOf(node))) return false;
  }
  return false;
};

const GRID_ROLES = new Set(["table", "grid", "treegrid"]);
const tableRoleOver = (el) => {
  const table = closest(composedParent(el), (node) => tagOf(node) === "table");
  return table === null ? null : roleOf(table);
};

const cellBeside = (el, step) => {
  let node = step(el);
  while (node !== null && !isElement(node)) node = step(node);
  return node === null ? null : tagOf(node);
};
const previousSibling = getter(Node.prototype, "previousSibling");
const headerRole = (el) => {
  const scope = (attr(el, "scope") ?? "").trim().toLowerCase();
  if (scope === "row" || scope === "rowgroup") return "rowheader";
  if (scope === "col" || scope === "colgroup") return "columnheader";
  const beside = [cellBeside(el, previousSibling), cellBeside(el, nextSibling)];
  return beside.every((tag) => tag === null || tag === "th") ? "columnheader" : "rowheader";
};

const partOfTable = (role) => (el) => (GRID_ROLES.has(tableRoleOver(el)) ? (typeof role === "string" ? role : role(el)) : "generic");
const cellRole = (el) => (tableRoleOver(el) === "table" ? "cell" : "gridcell");

const linkRole = (el) => (hasAttribute(el, "href") || hasAttribute(el, "xlink:href") ? "link" : isEditableHost(el) ? "textbox" : "generic");
const imageRole = (el) => (attr(el, "alt") === "" && !keepsItsRole(el) ? "none" : "img");
const shapeRole = (role) => (el) => (hasSvgTitle(el) || namedByAuthor(el) ? role : "generic");

const isSummaryOfDetails = (el) => {
  const owner = parentNode(el);
  if (owner === null || !isElement(owner) || tagOf(owner) !== "details") return false;
  let node = firstChild(owner);
  while (node !== null && !(isElement(node) && tagOf(node) === "summary")) node = nextSibling(node);
  return node === el;
};

const hasSvgTitle = (el) => {
  for (let node = firstChild(el); node !== null; node = nextSibling(node))
    if (isElement(node) && tagOf(node) === "svg:title") return true;
  return false;
};

const TAG_ROLES = new Map(Object.entries({
  a: linkRole, area: linkRole, "svg:a": linkRole, input: inputRole, img: imageRole,
  select: (el) => (hasAttribute(el, "multiple") || Number(attr(el, "size")) > 1 ? "listbox" : "combobox"),
  header: (el) => (insideSection(el, SECTIONING) ? "generic" : "banner"),
  footer: (el) => (insideSection(el, SECTIONING) ? "generic" : "contentinfo"),
  section: (el) => (namedByAuthor(el) ? "region" : "generic"),
  aside: (el) => (namedByAuthor(el) || !insideSection(el, NESTING) ? "complementary" : "generic"),
  li: (el) => (isListItem(el) ? "listitem" : "generic"),
  summary: (el) => (isSummaryOfDetails(el) ? "button" : "generic"),
  tr: partOfTable("row"), td: partOfTable(cellRole), th: partOfTable(headerRole), tbody: partOfTable("rowgroup"),
  thead: partOfTable("rowgroup"), tfoot: partOfTable("rowgroup"), caption: partOfTable("caption"),
  "svg:g": shapeRole("group"), "svg:circle": shapeRole("img"), "svg:rect": shapeRole("img"), "svg:path": shapeRole("img"),
  "svg:polygon": shapeRole("img"), "svg:ellipse": shapeRole("img"), "svg:line": shapeRole("img"), "svg:polyline": shapeRole("img"),
  "svg:svg": "img", "svg:image": "img", "svg:math": "math",
  button: "button", textarea: "textbox", option: "option", datalist: "listbox", optgroup: "group", nav: "navigation",
  main: "main", dialog: "dialog", article: "article", h1: "heading", h2: "heading", h3: "heading", h4: "heading",
  h5: "heading", h6: "heading", ul: "list", ol: "list", menu: "list", dir: "list", table: "table", fieldset: "group",
  details: "group", address: "group", hgroup: "group", progress: "progressbar", meter: "meter", output: "status",
  search: "search", form: "form", hr: "separator", figure: "figure", blockquote: "blockquote", p: "paragraph", code: "code",
  del: "deletion", s: "deletion", ins: "insertion", em: "emphasis", strong: "strong", mark: "mark", sub: "subscript",
  sup: "superscript", time: "time", dfn: "term", dt: "term", dd: "definition", iframe: "iframe", label: "label",
}));
const NESTING = new Set(["article", "aside", "nav", "section"]);

// Editing beats the meaning of the markup: what can be typed into is a text box, unless it is pressed or chosen.
const roleOf = (el) => {
  const given = explicitRole(el);
  if (given !== null) return given;
  const own = TAG_ROLES.get(tagOf(el));
  const role = own === undefined ? "generic" : typeof own === "string" ? own : own(el);
  return !INTERACTIVE.has(role) && hasAttribute(el, "contenteditable") && isEditableHost(el) ? "textbox" : role;
};
