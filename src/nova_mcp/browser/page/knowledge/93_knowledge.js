// What stored knowledge asks of a page: what its selectors find now, and what elements look like. Prints outlive the
// page, so nothing that somebody entered goes into one, and the page has no say in how long anything gets.
const KNOWN = { selectors: 64, surfaces: 8, matches: 1000, tried: 50, millis: 500, longest: 8000, elements: 400, fields: 30, roads: 4 };
const PRINT = { label: 120, near: 60, neighbours: 4, classes: 12, shape: 300, levels: 40 };
const UNREAD = Object.freeze({ list: NONE, invalid: false, unread: true });
const INVALID = Object.freeze({ list: NONE, invalid: true, unread: false });
const foundList = (list) => ({ list, invalid: false, unread: false });

// -- many selectors at once: those by role share one search

const longestWord = (text) => text.split(" ").reduce((best, word) => (word.length > best.length ? word : best), "");
const NAMING_CSS = "img,svg,input,select,textarea,slot,[aria-label],[aria-labelledby],[title],[alt]";
const ELSEWHERE = ["aria-labelledby", "aria-owns", "title", "alt", "value"];
// Most names are a label or the text inside. One that lacks the longest word of each wanted name is none of them.
const mayBeNamed = (el, tag, words) => {
  const holdsWord = (text) => words.some((word) => text.includes(word));
  if (hasAttributes(el)) {
    if (ELSEWHERE.some((name) => hasAttribute(el, name))) return true;
    const label = attr(el, "aria-label");
    if (label !== null && says(label)) return holdsWord(label);
  }
  if (tag === "button" ? labelsFor(el).length > 0 : LABELABLE.has(tag) || tag.includes("-") || openShadow(el) !== null) return true;
  if (holdsWord(textContentOf(el).slice(0, LONGEST_SOURCE))) return true;
  return firstElementIn(el) === null ? mayBeWrittenTo(el, firstChild(el) === null) : elementAll(el, NAMING_CSS).length > 0;
};

// Which roles a tag can have by itself where that depends on its place; finding out is dear and mostly in vain.
const PLACED_ROLES = new Map(Object.entries({
  tr: ["row"], td: ["cell", "gridcell"], th: ["columnheader", "rowheader"], tbody: ["rowgroup"], thead: ["rowgroup"], tfoot: ["rowgroup"],
  li: ["listitem"], header: ["banner"], footer: ["contentinfo"], section: ["region"], aside: ["complementary"], summary: ["button"],
  a: ["link", "textbox"], img: ["img", "none"], "svg:g": ["group"], "svg:path": ["img"],
}));
const mayHaveRole = (tag, usual, byRole) => (typeof usual === "string" ? [usual] : PLACED_ROLES.get(tag) ?? [...byRole.keys()]).some((role) => byRole.has(role));
// Everything that could have one of the roles, open shadow trees included, without asking each element of the page.
const roleCandidates = (byRole) => {
  if (byRole.has("generic")) return queryDeep(DOC, "*", LIMITS.nodes);
  const tags = [...TAG_ROLES].filter(([tag, usual]) => mayHaveRole(tag, usual, byRole)).map(([tag]) => tag.replace(/^svg:/, ""));
  return queryDeep(DOC, [...tags, "[role]", "[contenteditable]"].join(","), LIMITS.nodes);
};

// False when there was not time for all of them.
const roleSearches = (wanted, deadline) => {
  const byRole = new Map();
  for (const one of wanted) byRole.set(one.role, [...(byRole.get(one.role) ?? []), one]);
  const words = new Map([...byRole].map(([role, list]) => [role, [...new Set(list.map((one) => (one.name === null ? "" : longestWord(one.name))))]]));
  const candidates = roleCandidates(byRole);
  for (let i = 0; i < candidates.length; i += 1) {
    if ((i & 63) === 63 && now() > deadline) return false;
    const el = candidates[i];
    const tag = tagOf(el);
    const role = IGNORED.has(tag) ? "" : roleOf(el);
    const list = byRole.get(role);
    if (list === undefined || !mayBeNamed(el, tag, words.get(role))) continue;
    for (const one of list)
      if (one.found.length < KNOWN.matches && (one.name === null || nameOf(el, role) === one.name)) one.found.push(el);
  }
  return true;
};

// A list of the browser's own makes its elements only when they are asked for.
const cssFound = (text) => {
  const steps = splitSteps(text);
  return steps.length === 1 ? documentAll(DOC, steps[0]) : cssMatches(steps);
};
const firstOf = (list, most) => {
  const found = [];
  for (let i = 0; i < Math.min(list.length, most); i += 1) found.push(list[i]);
  return found;
};

// Selector → what it finds, the same as `select` does one by one; what time does not suffice for is unread.
const resolveMany = (selectors, deadline) => {
  const [told, roles] = [new Map(), []];
  for (const selector of selectors) {
    if (told.has(selector)) continue;
    const text = selector.trim();
    const left = deadline - now();
    try {
      if (left <= 0) told.set(selector, UNREAD);
      else if (text.startsWith("role=")) {
        const one = { ...readRole(text.slice(5)), found: [] };
        roles.push(one);
        told.set(selector, foundList(one.found));
      } else if (text.startsWith("text=")) {
        const list = textMatches(text.slice(5), { nodes: LIMITS.nodes, millis: left });
        told.set(selector, now() > deadline ? UNREAD : foundList(list));
      } else told.set(selector, foundList(cssFound(text)));
    } catch {
      told.set(selector, INVALID);
    }
  }
  if (roles.length > 0 && !roleSearches(roles, deadline))
    for (const [selector, { list }] of told) if (roles.some((one) => one.found === list)) told.set(selector, UNREAD);
  return told;
};

// The element that is meant: what can be seen comes first, as for a click.
const meantBy = (list) => {
  const found = firstOf(list, KNOWN.tried).find(seenByEye);
  return found !== undefined ? { el: found, visible: true } : { el: list[0] ?? null, visible: false };
};

// -- prints

// An identifier is whole or not there: half of it names nothing.
const identifier = (text) => (text === null || text.length > PRINT.label ? "" : squash(text));

const withoutSecrets = (text) => {
  let clean = text;
  for (const secret of secretValues) if (clean.includes(secret)) clean = clean.replaceAll(secret, "•••");
  return clean;
};
const shortText = (text, most) => cut(withoutSecrets(squash(text.slice(0, LONGEST_SOURCE))), most);

// The path of a link within its own site; neither what it asks there nor other sites are anybody's business.
const ownPath = (el) => {
  const href = attr(el, "href");
  if (href === null || href.length > 2000 || !isDestination(href) || href.trim().startsWith("#")) return "";
  const path = hrefPath(el);
  return path.startsWith("/") ? path.slice(0, PRINT.shape).toWellFormed() : "";
};

const shapeOf = (el) => {
  let shape = "";
  let node = el;
  for (let level = 0; node !== null && level < PRINT.levels; level += 1) {
    const tag = tagOf(node).slice(0, 40);
    if (shape.length + tag.length + 1 > PRINT.shape) break;
    shape = shape === "" ? tag : `${tag}/${shape}`;
    const up = parentNode(node);
    node = up === null ? null : isShadow(up) ? shadowHost(up) : isElement(up) ? up : null;
  }
  return shape;
};

const pageSize = () => {
  const root = documentElement(DOC);
  return [Math.max(view.width, root === null ? 0 : scrollWidthOf(root), 1), Math.max(view.height, root === null ? 0 : scrollHeightOf(root), 1)];
};
const share = (part, whole) => Math.round(Math.min(1, Math.max(0, part / whole)) * 1000) / 1000;
const placeIn = (el, size) => {
  const box = boxOf(el);
  if (box.width < 1 && box.height < 1) return null;
  return [share(box.left + view.x + box.width / 2, size[0]), share(box.top + view.y + box.height / 2, size[1])];
};

const ROW_TAGS = new Set(["tr", "li", "article", "dd", "fieldset"]);
const WHOLE_TAGS = new Set(["body", "html", "main", "form", "dialog", "table", "tbody", "nav"]);
const NEAR = { levels: 3, beside: 4, steps: 12, nodes: 24 };
const nearText = (node, known) => {
  if (isText(node)) return shortText(dataOf(node), PRINT.near);
  if (!isElement(node) || SKIPPED.has(tagOf(node)) || WHOLE_TAGS.has(tagOf(node)) || maybeControl(node)) return "";
  let text = known.get(node);
  if (text === undefined) {
    text = checkVisible(node, PLAINLY_SHOWN) ? shortText(bareText(node, NEAR.nodes), PRINT.near) : "";
    known.set(node, text);
  }
  return text;
};

// What stands among its likes is one of several rows, whatever it is called.
const standsInRow = (node) => {
  if (ROW_TAGS.has(tagOf(node)) || ROW_ROLES.has(attr(node, "role"))) return true;
  const own = classTokens(node);
  const isLike = (other) => {
    if (other === null || localName(other) !== localName(node)) return false;
    const names = classTokens(other);
    return names.length === 0 ? own.length === 0 : names.some((name) => own.includes(name));
  };
  return isLike(elementBeside(node, previousSibling)) || isLike(elementBeside(node, nextSibling));
};

// Texts beside the element and beside what holds it, nearest first, up to the border of its row.
const neighboursOf = (el, own, known) => {
  const found = new Set();
  let node = el;
  for (let level = 0; level < NEAR.levels && node !== null; level += 1) {
    if (WHOLE_TAGS.has(tagOf(node)) || (level > 0 && standsInRow(node))) break;
    for (const step of [previousSibling, nextSibling]) {
      let other = step(node);
      for (let [left, steps] = [NEAR.beside, NEAR.steps]; other !== null && left > 0 && steps > 0; steps -= 1, other = step(other)) {
        const text = nearText(other, known);
        if (isElement(other) || text !== "") left -= 1;
        if (text !== "" && text !== own) found.add(text);
        if (found.size >= PRINT.neighbours) return [...found];
      }
    }
    const up = parentNode(node);
    node = up === null ? null : isShadow(up) ? shadowHost(up) : isElement(up) ? up : null;
  }
  return [...found];
};

const classTokens = (el) => {
  const given = attr(el, "class");
  if (given === null || given === "") return [];
  return tokensOf(given.slice(0, 4000)).filter((token) => token !== "" && token.length <= PRINT.near).slice(0, PRINT.classes).map((token) => token.toWellFormed());
};

// What an element without a label shows: the name of an icon's class, of a drawing or of an image file, nothing else.
const LETTER = /\p{L}/u;
const PICTURES = "img,svg,use,i,span";
const stemOf = (address) => (/^(?:data|blob):/i.test(address) ? "" : (/([^/?#]+?)(?:\.[a-z0-9]+)?(?:[?#].*)?$/i.exec(address)?.[1] ?? ""));
const pictureName = (el) => {
  const tag = localName(el);
  if (tag === "img") return stemOf(attr(el, "src") ?? "");
  if (tag === "use") return (attr(el, "href") ?? attr(el, "xlink:href") ?? "").split("#")[1] ?? "";
  if (tag === "svg") return attr(el, "data-icon") ?? attr(el, "class") ?? "";
  return firstElementIn(el) === null ? attr(el, "class") ?? "" : "";
};
const pictureOf = (el) => {
  const found = elementAll(el, PICTURES);
  for (let i = 0; i < Math.min(found.length, PRINT.neighbours); i += 1) {
    const name = pictureName(found[i]);
    if (name !== "" && name.length <= PRINT.near) return shortText(name, PRINT.near);
  }
  return "";
};

// Texts of neighbours are shared by the elements of one question, and so is the size of the page.
const printTools = () => ({ near: new Map(), size: pageSize() });
const printOf = (el, tools, role = roleOf(el)) => {
  const name = bareName(el, role);
  const text = shortText(name.text, PRINT.label);
  const print = {
    tag: tagOf(el).slice(0, 40), type: typeOf(el), name: identifier(attr(el, "name")), text, href: ownPath(el),
    id: identifier(attr(el, "id")), testid: identifier(testidOf(el)?.[1] ?? null), role, aria: shortText(attr(el, "aria-label") ?? "", PRINT.label),
    classes: classTokens(el), near: neighboursOf(el, text, tools.near), shape: shapeOf(el), place: placeIn(el, tools.size),
    picture: LETTER.test(text) ? "" : pictureOf(el),
  };
  return { print, held: name.held };
};

// -- one look at what the selectors of an entry find

// What a control says. A field speaks through its label alone, never through what stands in it.
const ENTRY_TAGS = new Set(["input", "textarea", "select"]);
const BUTTON_INPUTS = new Set(["submit", "button", "reset", "image"]);
const controlTold = (el) => {
  const tag = tagOf(el);
  if (!(ENTRY_TAGS.has(tag) && !BUTTON_INPUTS.has(typeOf(el))) && !isEditableHost(el)) return pressFacts(el);
  const texts = [bareName(el, roleOf(el)).text, attr(el, "aria-label") ?? "", attr(el, "title") ?? ""].map((text) => shortText(text, 200));
  return { texts: [...new Set(texts)].filter((text) => text !== ""), identifiers: [], platform: null, away: "", unfolds: false, small: false };
};

// Forms are told once each, by their place in a list, and without the many fields that are alike, which say nothing new
// about what a form does.
const formsOnce = () => {
  const [told, places] = [[], new Map()];
  const place = (form) => {
    if (!places.has(form)) {
      const facts = formFacts(form);
      const kinds = new Set();
      const isNew = (field) => {
        const kind = `${field.tag} ${field.type} ${field.autocomplete}`;
        return !kinds.has(kind) && kinds.add(kind).size <= KNOWN.fields;
      };
      const fields = facts.fields.filter((field, index) => isNew(field) || index < KNOWN.fields);
      places.set(form, told.push({ ...facts, fields: fields.map((field) => ({ ...field, autocomplete: cut(field.autocomplete, 100) })) }) - 1);
    }
    return places.get(form);
  };
  return { told, place };
};

// What would be set off by a press in the middle; where something lies above it, by a press on the element alone.
const roadsFrom = (el, tools) => {
  const box = boxOf(el);
  const hit = deepHit(box.left + box.width / 2, box.top + box.height / 2);
  const inner = hit !== null && composedContains(el, hit) ? hit : el;
  return commitRoads(el, inner, tools.places, tools.halo, tools.forms.place).slice(0, KNOWN.roads).map((road) => ({ ...road, value: "" }));
};

const seenFor = ({ list, invalid, unread }, inside, tools) => {
  const { el, visible } = meantBy(list);
  const told = { matches: Math.min(list.length, KNOWN.matches), visible, inside: null, invalid, unread };
  if (el === null) return told;
  return { ...told, inside: inside(el), control: controlTold(el), roads: roadsFrom(el, tools), ...printOf(el, tools) };
};

// The host says how long it waits; whoever asks for more than a few seconds gets no more.
const patience = (millis, usual) => Math.min(Math.max(1, millis ?? usual), KNOWN.longest);

questions.knowledgeLook = ({ selectors = [], surfaces = [], millis }) => {
  const deadline = now() + patience(millis, KNOWN.millis);
  shadowRoots.at = -Infinity;
  const [wanted, around] = [selectors.slice(0, KNOWN.selectors), surfaces.slice(0, KNOWN.surfaces)];
  const found = resolveMany([...around, ...wanted], deadline);
  const layers = around.flatMap((surface) => firstOf(found.get(surface).list, KNOWN.tried)).filter((el) => !matches(el, "html,body"));
  const inside = (el) => (around.length === 0 ? null : layers.some((layer) => composedContains(layer, el)));
  const tools = { ...printTools(), places: makePlaces(), halo: composerHalo(), forms: formsOnce() };
  const seen = wanted.map((selector) => seenFor(now() > deadline ? UNREAD : found.get(selector), inside, tools));
  return JSON.stringify({ seen, forms: tools.forms.told });
};
