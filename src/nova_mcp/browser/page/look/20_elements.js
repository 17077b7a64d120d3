// What Nova knows about one element: identity, state, place. The same facts feed lists, refs and the checks before input.
const TESTIDS = ["data-testid", "data-test", "data-qa"];
const ROW_ROLES = new Set(["row", "listitem", "article", "option", "treeitem"]);
const NAV_ROLES = new Set(["navigation", "contentinfo", "complementary"]);
const DIALOG_ROLES = new Set(["dialog", "alertdialog"]);
const LANDMARKS = new Set(["main", "navigation", "banner", "contentinfo", "complementary", "search", "region", "form"]);

const testidOf = (el) => {
  for (const name of TESTIDS) {
    const value = attr(el, name);
    if (value) return [name, value];
  }
  return null;
};

const baseUri = getter(Node.prototype, "baseURI");
const DOC_BASE = () => baseUri(DOC);
const resolvedPath = (given, base) => {
  try {
    const url = new URL(given, base);
    return url.protocol === "javascript:" ? "" : url.origin === WIN.location.origin ? url.pathname : url.origin + url.pathname;
  } catch {
    return "";
  }
};

// Parsing an address is dear; a page repeats few forms of it. Without a dot there is no segment to resolve, and what
// follows the path cannot change it.
const PLAIN_PATH = /^(\/(?!\/)[\w~/-]*)(?:[?#]|$)/;
const knownPaths = { base: null, plain: false, paths: new Map() };
const forgetPaths = () => {
  knownPaths.base = null;
};
asked.push(forgetPaths);
const hrefPath = (el) => {
  const given = attr(el, "href");
  if (given === null) return "";
  if (knownPaths.base === null) {
    knownPaths.base = DOC_BASE();
    knownPaths.plain = /^https?:/.test(knownPaths.base) && resolvedPath("/", knownPaths.base) === "/";
    knownPaths.paths.clear();
  }
  if (knownPaths.plain) {
    const plain = PLAIN_PATH.exec(given);
    if (plain !== null) return plain[1];
  }
  let path = knownPaths.paths.get(given);
  if (path === undefined) knownPaths.paths.set(given, (path = resolvedPath(given, knownPaths.base)));
  return path;
};

const isButtonLike = (el) => {
  const tag = tagOf(el);
  return tag === "button" || tag === "input" || tag === "select" || tag === "textarea" || attr(el, "role") === "button";
};

// Text of a row without its controls, so that a button that changes its label does not make it another row.
const rowText = (el, budget) => {
  let text = "";
  for (const child of composedChildren(el)) {
    if (budget.left <= 0 || text.length > 120) break;
    budget.left -= 1;
    if (isText(child)) text += dataOf(child);
    else if (isElement(child) && !isButtonLike(child) && tagOf(child) !== "script" && tagOf(child) !== "style" && rendered(child))
      text += ` ${rowText(child, budget)} `;
  }
  return text;
};

// `form` is the nearest form or what stands for one, `owner` the nearest real form, `side` which kind of margin this is.
const EMPTY_PLACE = Object.freeze({
  dialog: null, modal: false, main: false, nav: false, side: "", form: null, owner: null, row: null, landmark: null,
  menu: null, off: false, inert: false,
});
const MENU_ROLES = new Set(["menu", "listbox", "radiogroup"]);
const hasAttributes = uncurry(Element.prototype.hasAttributes);

const placeStep = (el, outer) => {
  const tag = tagOf(el);
  const plain = tag === "div" || tag === "span" || tag === "p";
  let place = outer;
  if (hasAttributes(el)) {
    if (!place.off && isTrue(el, "aria-disabled")) place = { ...place, off: true };
    if (!place.inert && hasAttribute(el, "inert")) place = { ...place, inert: true };
    if (plain && !hasAttribute(el, "role")) return place;
  } else if (plain) return place;
  const role = roleOf(el);
  if (DIALOG_ROLES.has(role)) {
    const modal = attr(el, "aria-modal") === "true" || (tag === "dialog" && matches(el, ":modal"));
    place = { ...place, dialog: el, modal, landmark: el, row: null };
  }
  if (role === "main" || role === "article") place = { ...place, main: true, nav: false, side: "" };
  if (tag === "form") place = { ...place, form: el, owner: el };
  else if (role === "form" || role === "search") place = { ...place, form: el };
  if (NAV_ROLES.has(role)) place = { ...place, nav: true, main: false, side: role };
  if (MENU_ROLES.has(role)) place = { ...place, menu: el };
  if (ROW_ROLES.has(role)) place = { ...place, row: el };
  if (LANDMARKS.has(role)) place = { ...place, landmark: el };
  return place;
};

const makePlaces = () => {
  forgetLabels();
  forgetNames();
  forgetPaths();
  measure();
  const known = new Map();
  const placeOf = (el) => {
    const chain = [];
    let node = el;
    let place;
    while (node !== null && (place = known.get(node)) === undefined) {
      chain.push(node);
      node = composedParent(node);
    }
    place ??= EMPTY_PLACE;
    for (let i = chain.length - 1; i >= 0; i -= 1) {
      place = placeStep(chain[i], place);
      known.set(chain[i], place);
    }
    return place;
  };
  const rows = new Map();
  const rowKey = (el) => {
    const place = placeOf(el);
    const row = place.row === el ? placeOf(composedParent(el) ?? el).row : place.row;
    if (row === null || row === el) return "";
    let key = rows.get(row);
    if (key === undefined) rows.set(row, (key = squash(rowText(row, { left: 120 })).slice(0, 80)));
    return key;
  };
  const menus = new Map();
  const menuName = (el) => {
    const { menu } = placeOf(el);
    if (menu === null) return "";
    let name = menus.get(menu);
    if (name === undefined) menus.set(menu, (name = nameOf(menu, roleOf(menu))));
    return name;
  };
  const ownerOf = (el) => controlForms.get(tagOf(el))?.(el) ?? placeOf(el).owner;
  return { placeOf, rowKey, menuName, ownerOf };
};

const formOwner = (el) => {
  const owner = controlForms.get(tagOf(el))?.(el);
  return owner ?? closest(el, (node) => tagOf(node) === "form");
};

const isDisabled = (el) => {
  if (matches(el, ":disabled")) return "disabled";
  return closest(el, (node) => isTrue(node, "aria-disabled")) !== null
    ? "aria-disabled"
    : closest(el, (node) => hasAttribute(node, "inert")) !== null
      ? "inert"
      : null;
};

const SECRET_AUTOCOMPLETE = /(^|\s)(current-password|new-password|one-time-code|cc-[a-z-]+)(\s|$)/;
// Many shops leave autocomplete out of their payment forms; the names of such fields hardly differ between them.
const CARD_NAME = /(^|[^a-z])(cc|card|credit-?card|karten?|kreditkarten?|carte|tarjeta)[^a-z]*(number|num|no|nr|nummer|numero|pan|cvc|cvv|csc)([^a-z]|$)|(^|[^a-z])(cvc2?|cvv2?|csc|pan)([^a-z]|$)/;
const LONG_NUMBER = /^\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{1,7}$/;
const passesLuhn = (text) => {
  const digits = [...text].filter((sign) => sign >= "0" && sign <= "9").reverse();
  const sum = digits.reduce((total, sign, index) => total + (index % 2 ? ((2 * sign) % 10) + (sign > "4") : Number(sign)), 0);
  return sum % 10 === 0;
};
const holdsCard = (el) => {
  if (tagOf(el) !== "input") return false;
  const names = [attr(el, "name"), attr(el, "id"), attr(el, "data-testid")].map((name) => (name ?? "").replace(/([a-z])([A-Z])/g, "$1-$2").toLowerCase());
  if (names.some((name) => CARD_NAME.test(name))) return true;
  const value = inputValue(el).trim();
  return LONG_NUMBER.test(value) && passesLuhn(value);
};
const secretFields = new WeakSet();
// What stood in such a field stays secret when the page puts another field, or plain text, in its place. Shorter values
// would hide half the page; names and dates on a card are no secrets of their own.
const secretValues = new Set();
const SHORTEST_SECRET = 4;
const MOST_SECRETS = 50;
const NO_SECRET_ALONE = /(^|\s)cc-(name|given-name|additional-name|family-name|exp|exp-month|exp-year|type)(\s|$)/;
const rememberSecret = (el, autocomplete) => {
  const value = rawValue(el);
  if (value.length < SHORTEST_SECRET || secretValues.has(value) || NO_SECRET_ALONE.test(autocomplete)) return;
  if (secretValues.size >= MOST_SECRETS) secretValues.delete(secretValues.values().next().value);
  secretValues.add(value);
};
const isSecret = (el) => {
  const tag = tagOf(el);
  if (tag === "input" && inputType(el) === "password") secretFields.add(el);
  const autocomplete = (attr(el, "autocomplete") ?? "").toLowerCase();
  if (secretFields.has(el) || SECRET_AUTOCOMPLETE.test(autocomplete) || holdsCard(el)) {
    rememberSecret(el, autocomplete);
    return true;
  }
  return secretValues.size > 0 && (tag === "input" || tag === "textarea") && secretValues.has(rawValue(el));
};

const innerTextOf = getter(HTMLElement.prototype, "innerText");

const rawValue = (el) => {
  const tag = tagOf(el);
  if (tag === "input") return inputValue(el);
  if (tag === "textarea") return areaValue(el);
  if (tag === "select") return selectOptions(el).length ? optionText(selectOptions(el)[0]) : "";
  return isEditableHost(el) ? innerTextOf(el) : "";
};

const SILENT_VALUES = new Set(["submit", "button", "reset", "image", "checkbox", "radio", "file", "hidden"]);
const valueOf = (el) => {
  const tag = tagOf(el);
  if (tag === "input" && SILENT_VALUES.has(inputType(el))) return "";
  const value = rawValue(el);
  if (value === "") return "";
  return isSecret(el) ? "•••" : cut(squash(value), 200);
};

const checkedState = (el) => {
  const tag = tagOf(el);
  if (tag === "input" && (inputType(el) === "checkbox" || inputType(el) === "radio")) return inputChecked(el);
  if (tag === "option") return optionIsOn(el);
  return (attr(el, "aria-checked") ?? attr(el, "aria-pressed") ?? attr(el, "aria-selected") ?? "").toLowerCase() === "true";
};

const expandedState = (el) => {
  if (tagOf(el) === "summary") return isSummaryOfDetails(el) && detailsOpen(parentNode(el));
  return isTrue(el, "aria-expanded");
};

// Any word but "false" says that something is wrong; the browser itself waits until somebody has tried to fill the field.
const isInvalid = (el) => {
  const told = (attr(el, "aria-invalid") ?? "").trim().toLowerCase();
  return (told !== "" && told !== "false") || matches(el, ":user-invalid");
};

const MOST_TAG = 80;
const identityOf = (el, places, role = roleOf(el)) => {
  const testid = testidOf(el);
  return {
    tag: tagOf(el).slice(0, MOST_TAG), role, name: nameOf(el, role), type: typeOf(el), id: cut(attr(el, "id") ?? "", 120),
    testid: testid ? cut(testid[1], 120) : "", nameAttr: cut(attr(el, "name") ?? "", 120), href: cut(hrefPath(el), 300),
    row: places.rowKey(el),
  };
};

const flagsOf = (el, place) => {
  const flags = [];
  if (place.off || place.inert || matches(el, ":disabled")) flags.push("disabled");
  if (checkedState(el)) flags.push("checked");
  if (expandedState(el)) flags.push("expanded");
  if (matches(el, ":required") || isTrue(el, "aria-required")) flags.push("required");
  if (isInvalid(el)) flags.push("invalid");
  const target = attr(el, "target");
  if (target !== null && target.toLowerCase() === "_blank") flags.push("newtab");
  return flags;
};

// An anchor whose href is empty, a lone hash or a script goes nowhere: it is a button.
const isDestination = (href) => href !== null && !/^\s*(#?\s*$|javascript:)/i.test(href);

// Neither does one whose own script stops it, or whose hash names nothing in the document; routes have signs in them.
const STOPS_ITSELF = /return\s+false|preventDefault/;
const HASH_NAME = /^\s*#([\w-]+)\s*$/;
const leadsSomewhere = (el) => {
  const href = attr(el, "href");
  if (!isDestination(href)) return false;
  const hash = HASH_NAME.exec(href.slice(0, MOST_TEXT));
  if (hash !== null && hash[1].toLowerCase() !== "top" && idIn(DOC, hash[1]) === null && queryAll(DOC, `a[name="${hash[1]}"]`).length === 0) return false;
  return !STOPS_ITSELF.test(attr(el, "onclick") ?? "");
};

const PRIMARY = /(^|[-_ ])(primary|cta)([-_ ]|$)/i;
const factsOf = (el, places) => {
  const facts = identityOf(el, places);
  const box = boxOf(el);
  const place = places.placeOf(el);
  const form = places.ownerOf(el) ?? place.form;
  return {
    n: numberOf(el), ...facts, value: valueOf(el), flags: flagsOf(el, place), visible: visibleIn(el, box),
    box: [Math.round(box.left), Math.round(box.top), Math.round(box.width), Math.round(box.height)],
    dialog: place.dialog !== null, modal: place.modal, main: place.main || form !== null, nav: place.nav,
    form: form === null ? 0 : numberOf(form), control: CONTROLS.has(facts.role),
    link: leadsSomewhere(el), primary: facts.type === "submit" || PRIMARY.test(attr(el, "class") ?? ""),
  };
};

// -- forms and composers, for the decision whether an action commits something

const fieldFacts = (el) => {
  const role = roleOf(el);
  return {
    tag: tagOf(el), type: typeOf(el), name: cut(attr(el, "name") ?? "", 80), label: cut(nameOf(el, role), 80),
    autocomplete: cut((attr(el, "autocomplete") ?? "").slice(0, 200).toLowerCase(), 200), card: holdsCard(el),
  };
};

// Fields that make a form weighty, however far down they stand.
const weighs = (el, tag) =>
  tag === "textarea" || (tag === "input" && ["password", "file"].includes(inputType(el))) || /(^|\s)cc-/i.test(attr(el, "autocomplete") ?? "") || holdsCard(el);

// A submit button may overrule the method of its form, and where it leads.
const postsAnyway = (el) => {
  if ((attr(el, "formmethod") ?? "").trim().toLowerCase() === "post") return true;
  const given = (attr(el, "formaction") ?? "").trim();
  if (given === "") return false;
  const form = formOwner(el);
  const path = (address) => resolvedPath(address.slice(0, MOST_ADDRESS), DOC_BASE());
  return path(given) !== path((form === null ? null : attr(form, "action")) || pageAddress());
};

// What a form goes by: what it is called, where it leads, and the method that a hidden field puts in place of its own.
const formWords = (form, first) => {
  const legend = queryAll(form, "legend")[0];
  const hidden = queryAll(form, "input[type=hidden][name=_method]")[0];
  const words = (list) => list.filter(Boolean).map((text) => cut(squash(text.slice(0, MOST_TEXT)), 200));
  const button = first === null ? "" : nameOf(first, roleOf(first));
  return {
    headings: words([attr(form, "aria-label"), attr(form, "title"), legend ? textContentOf(legend).slice(0, MOST_TEXT) : ""]),
    addresses: words([attr(form, "action"), attr(form, "id"), attr(form, "name"), hidden ? inputValue(hidden) : ""]),
    button: first === null ? [] : words([button, ...otherReadings(first, tagOf(first), roleOf(first), button).split("\n")]),
  };
};

const formFacts = (form) => {
  const isForm = tagOf(form) === "form";
  const fields = [];
  const list = isForm ? formElements(form) : queryAll(form, "input,select,textarea,button");
  const first = isForm ? submittersOf(form)[0] ?? null : null;
  for (let i = 0; i < Math.min(list.length, 2000); i += 1) {
    const tag = tagOf(list[i]);
    if (tag !== "input" && tag !== "textarea" && tag !== "select") continue;
    if (tag === "input" && ["hidden", "submit", "button", "reset", "image"].includes(inputType(list[i]))) continue;
    if (fields.length < 60 || weighs(list[i], tag)) fields.push(fieldFacts(list[i]));
  }
  const search = closest(form, (node) => roleOf(node) === "search") !== null;
  return {
    n: numberOf(form), isForm, search,
    method: !isForm ? "" : sendsChange(form) ? "post" : (attr(form, "method") ?? "").slice(0, 40).toLowerCase(),
    ...(isForm ? formWords(form, first) : {}),
    action: isForm ? cut(attr(form, "action") ?? "", 300) : "", enterPosts: first !== null && postsAnyway(first), name: cut(attr(form, "aria-label") ?? attr(form, "name") ?? "", 80), fields,
  };
};

const isComposer = (el) => {
  const tag = tagOf(el);
  if (isEditableHost(el)) return true;
  return tag === "textarea" || attr(el, "role") === "textbox";
};

// A line for messages is known by what it says of itself, and stands in no form that is filled in.
const isMessageLine = (el) => tagOf(el) === "input" && isTextBox(el) && !isSearchField(el) && !sharesForm(el) && saysMessage(el);

// Elements up to five levels above a composer; a control inside one of them stands near it.
const composerHalo = () => {
  const halo = new Set();
  const found = queryAll(DOC, "textarea,[contenteditable],[role=textbox],input:not([type]),input[type=text]");
  for (let i = 0; i < Math.min(found.length, 50); i += 1) {
    if (!(isComposer(found[i]) || isMessageLine(found[i])) || !rendered(found[i])) continue;
    let node = composedParent(found[i]);
    for (let depth = 0; node !== null && depth < 5; depth += 1, node = composedParent(node)) {
      const tag = tagOf(node);
      if (tag === "body" || tag === "html" || tag === "main") break;
      halo.add(node);
    }
  }
  return halo;
};

const nearComposer = (el, halo) => {
  if (halo.size === 0) return false;
  let node = composedParent(el);
  for (let depth = 0; node !== null && depth < 5; depth += 1, node = composedParent(node)) if (halo.has(node)) return true;
  return false;
};

const actingElement = (el) =>
  closest(el, (node) => INTERACTIVE.has(roleOf(node)) || tagOf(node) === "label" || tagOf(node) === "summary") ?? el;

const isSubmitter = (el, form) => {
  const tag = tagOf(el);
  if (form === null || tagOf(form) !== "form") return false;
  if (tag === "button") return buttonType(el) === "submit";
  if (tag === "input") return ["submit", "image"].includes(inputType(el));
  return tag.includes("-") && !tag.startsWith("svg:") && (attr(el, "type") ?? "").toLowerCase() === "submit";
};

// All that submit a form, in the order of the document: Enter presses the first. A form does not list its images.
const comparePlaces = uncurry(Node.prototype.compareDocumentPosition);
const submittersOf = (form) => {
  const list = formElements(form);
  const found = [];
  for (let i = 0; i < Math.min(list.length, 5000); i += 1) if (isSubmitter(list[i], form)) found.push(list[i]);
  const images = queryAll(rootNode(form), "input[type=image]");
  for (let i = 0; i < Math.min(images.length, 200); i += 1) if (formOwner(images[i]) === form) found.push(images[i]);
  return images.length ? found.sort((one, other) => (comparePlaces(one, other) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1)) : found;
};

// Elements that do something by themselves when pressed, whatever role they claim.
const ACTIVATED = new Set(["button", "input", "a", "area", "summary", "svg:a"]);
const activatedBy = (hit) => {
  const found = [];
  for (let node = hit; node !== null; node = composedParent(node)) {
    const tag = tagOf(node);
    const acting = tag === "label" ? labelControl(node) : node;
    if (acting !== null && (ACTIVATED.has(tagOf(acting)) || isSubmitter(acting, formOwner(acting)))) found.push(acting);
  }
  return found;
};

// A part of a list that stands in no such list is a control of the page's own making.
const LIST_OF_ROLE = new Map([["tab", ["tablist"]], ["option", ["listbox", "combobox", "menu"]], ["treeitem", ["tree"]]]);
const NATIVE_CONTROLS = new Set(["button", "input", "select", "textarea", "option", "summary"]);
const standsAlone = (el, role) => {
  const lists = LIST_OF_ROLE.get(role);
  return lists !== undefined && !NATIVE_CONTROLS.has(tagOf(el)) && closest(composedParent(el), (node) => lists.includes(roleOf(node))) === null;
};

// What an element says that is made to be pressed without saying so. Of a long text its first sentence counts.
const LONGEST_SAYING = 60;
const FIRST_SENTENCE = /^[^.!?]{1,60}[.!?](?=\s)/;
// Boxes around other things say what those are about.
const BOX_ROLES = new Set([
  ...LANDMARKS, ...DIALOG_ROLES, ...MENU_ROLES, "application", "article", "document", "feed", "grid", "group", "list", "menubar",
  "table", "tablist", "tabpanel", "toolbar", "tree", "treegrid",
]);
const isMadeToBePressed = (el, role, chosen) => {
  if (hasAttribute(el, "onclick")) return true;
  const drawing = tagOf(el).startsWith("svg:");
  if (BOX_ROLES.has(role) && !drawing) return false;
  if (hasAttribute(el, "tabindex")) return true;
  const pointed = tagOf(el) === "a" || styleOf(el).cursor === "pointer";
  // A heading or a picture that is merely named says nothing of a press.
  return drawing || PLAIN_ROLES.has(role) ? chosen || pointed : chosen && pointed;
};
const saysWithoutRole = (el, role, chosen) => {
  if (INTERACTIVE.has(role) && !tagOf(el).startsWith("svg:") && !standsAlone(el, role)) return "";
  if (!isMadeToBePressed(el, role, chosen)) return "";
  const text = nameOf(el, role) || squash(namedText(el, 0, { left: LONGEST_SAYING }));
  if (text.length <= LONGEST_SAYING) return text;
  return hasAttribute(el, "onclick") || hasAttribute(el, "tabindex") ? FIRST_SENTENCE.exec(text)?.[0] ?? "" : "";
};

// What the commit rules need beyond identity; kept apart because only controls that can commit are asked for it.
const commitExtras = (el, places, halo, chosen = false) => {
  const owner = places.ownerOf(el);
  const submitter = isSubmitter(el, owner);
  const scripted = submitsByScript(el);
  const role = roleOf(el);
  const says = saysWithoutRole(el, role, chosen);
  return {
    submitter: submitter || (scripted && owner !== null), fills: submitsWhenFilled(el, owner), posts: submitter && postsAnyway(el), nearComposer: nearComposer(el, halo),
    composer: sendsOnEnter(el), says, menuName: places.menuName(el), changes: sendsChange(el) || (scripted && owner === null), nearCard: nearCard(el),
    reads: otherReadings(el, tagOf(el), says === "" ? role : "button", says || nameOf(el, role)),
    question: askedBy(places.placeOf(el).dialog),
  };
};

const commitFacts = (el, places, halo, chosen, formTold = formFacts) => {
  const acting = tagOf(el) === "label" ? labelControl(el) ?? el : el;
  const form = formOwner(acting) ?? places.placeOf(acting).form;
  return { ...factsOf(acting, places), ...commitExtras(acting, places, halo, chosen), formFacts: form === null ? null : formTold(form) };
};

// Everything a press at this point would set off, the chosen element's own control first.
const commitRoads = (el, hit, places, halo = composerHalo(), formTold = formFacts) => {
  const own = actingElement(el);
  const roads = [commitFacts(own, places, halo, own === el, formTold)];
  if (hit === null) return roads;
  const known = new Set([own]);
  const scripted = closest(hit, (node) => hasAttribute(node, "onclick"));
  for (const other of [actingElement(hit), scripted, ...activatedBy(hit)]) {
    if (other === null || known.has(other) || roads.length >= 8) continue;
    known.add(other);
    roads.push(commitFacts(other, places, halo, false, formTold));
  }
  return roads;
};
