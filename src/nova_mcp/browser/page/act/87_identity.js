// What makes two commits the same one: the control, and what a person filled in. Values leave here only as a hash.
const mix = (text, seed) => {
  let [h1, h2] = [0xdeadbeef ^ seed, 0x41c6ce57 ^ seed];
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    h1 = Math.imul(h1 ^ code, 2654435761);
    h2 = Math.imul(h2 ^ code, 1597334677);
  }
  h1 = Math.imul(h1 ^ (h1 >>> 16), 2246822507) ^ Math.imul(h2 ^ (h2 >>> 13), 3266489909);
  h2 = Math.imul(h2 ^ (h2 >>> 16), 2246822507) ^ Math.imul(h1 ^ (h1 >>> 13), 3266489909);
  return (h2 >>> 0).toString(16).padStart(8, "0") + (h1 >>> 0).toString(16).padStart(8, "0");
};
const digestOf = (text) => mix(text, 1) + mix(text, 2);

const UNFILLED = new Set(["hidden", "submit", "button", "reset", "image"]);
const FIELD_TAGS = new Set(["input", "select", "textarea"]);
const MOST_FIELDS = 300;
const fileNames = (el) => [...filesOf(el)].map((file) => `${file.name}:${file.size}`).join("|");
const filesOf = getter(HTMLInputElement.prototype, "files");

// A token is made anew each time and says nothing about what was meant, whatever field it stands in.
const TOKEN_NAME = /csrf|xsrf|token|nonce|captcha|signature|timestamp|verification|authenticity|viewstate|session|honeypot|utf8/i;
const TOKEN_VALUE = /^(?![0-9a-f]{8}-[0-9a-f]{4}-)[A-Za-z0-9+/_=.-]{24,}$/;
const isToken = (el, value) =>
  TOKEN_NAME.test(`${attr(el, "name") ?? ""} ${attr(el, "id") ?? ""}`) || TOKEN_VALUE.test(value) || CLOCK.test(value);

// Hidden inputs as the document brought them: what a picker puts into one later was chosen.
const hiddenAtFirst = new WeakMap();
const chosenSince = { pressed: false };
const rememberHiddenInputs = () => {
  const inputs = queryAll(DOC, "input[type=hidden]");
  for (let i = 0; i < Math.min(inputs.length, MOST_FIELDS); i += 1) hiddenAtFirst.set(inputs[i], inputValue(inputs[i]));
};
if (readyState(DOC) === "loading") listen(DOC, "DOMContentLoaded", rememberHiddenInputs, { once: true, passive: true });
else rememberHiddenInputs();
for (const type of ["pointerdown", "keydown"])
  listen(WIN, type, (event) => {
    chosenSince.pressed ||= event.isTrusted;
  }, { capture: true, passive: true });
const isChosenHidden = (el) => {
  const value = inputValue(el);
  return chosenSince.pressed && value !== "" && hiddenAtFirst.get(el) !== value && !isToken(el, value);
};

// A field that only a picker fills, or that names the record a form is about; a value made for this page alone is not.
const defaultOf = getter(HTMLInputElement.prototype, "defaultValue");
const namesRecord = (el) => {
  const value = rawValue(el).trim();
  if (value === "" || isToken(el, value)) return false;
  const picked = tagOf(el) === "input" && defaultOf(el) !== inputValue(el);
  return picked || (/\p{L}{2}/u.test(value) && !looksGenerated(value));
};

// Hidden fields, tokens and what nobody chose say nothing about what was meant.
const isFilledByPeople = (el) => {
  const tag = tagOf(el);
  if (tag === "input" && inputType(el) === "hidden") return isChosenHidden(el);
  if (tag === "input" && UNFILLED.has(inputType(el))) return false;
  if (!FIELD_TAGS.has(tag) && !isEditableHost(el)) return false;
  return visibleControl(el) && isDisabled(el) === null && (!hasAttribute(el, "readonly") || namesRecord(el));
};

// A tick stands for its record: by the value it sends, or by the row it stands in.
const EMPTY_TICKS = new Set(["", "on", "1", "true", "yes"]);
const tickedAs = (el, places) => {
  if (!inputChecked(el)) return "false";
  const value = attr(el, "value") ?? "";
  return EMPTY_TICKS.has(value.toLowerCase()) ? `true ${cardKey(el, places)}` : value;
};
const TICKED_CSS = "[role=row][aria-selected=true],[role=option][aria-selected=true],[role=treeitem][aria-selected=true],[role=checkbox][aria-checked=true]";
const tickedRows = (root, places) =>
  queryDeep(root, TICKED_CSS, MOST_FIELDS).filter((el) => !FIELD_TAGS.has(tagOf(el)) && visibleControl(el)).map((el) => {
    const own = roleOf(el) === "checkbox" ? `${nameOf(el, "checkbox")} ${cardKey(el, places)}` : rowText(el, { left: 120 });
    return `ticked=${squash(own).slice(0, 120).replace(AGO, "#").toLowerCase()}`;
  });

const filledIn = (el, places) => {
  const type = tagOf(el) === "input" ? inputType(el) : "";
  if (type === "checkbox" || type === "radio") return tickedAs(el, places);
  if (type === "file") return fileNames(el);
  if (tagOf(el) === "select") return [...selectOptions(el)].map(optionText).join("|");
  return plain(rawValue(el)).trim();
};

const identityKey = (el) => attr(el, "name") || attr(el, "id") || nameOf(el, roleOf(el));

// `typed` stands in for what the armed field will hold by the time it is committed.
// Order, blanks and case of what was filled in may be changed by the page itself, and so may the time it writes down.
const CLOCK = /\d{1,2}:\d{2}:\d{2}|^\d{10}(\d{3})?$/;
const fieldsDigest = (fields, typed, places, root = null) => {
  const parts = root === null ? [] : tickedRows(root, places);
  for (const el of fields) {
    if (parts.length >= MOST_FIELDS) break;
    if (el !== typed.el && !isFilledByPeople(el)) continue;
    const raw = el === typed.el ? plain((typed.append ? rawValue(el) : "") + typed.text) : filledIn(el, places);
    const value = squash(raw).toLowerCase();
    if (value === "" || value === "false" || (el !== typed.el && CLOCK.test(value))) continue;
    parts.push(`${identityKey(el)}=${value}`);
  }
  return digestOf(parts.sort().join("\n"));
};

const identityWithin = (root) => {
  const found = [];
  walk(root, (el) => {
    if (FIELD_TAGS.has(tagOf(el)) || isEditableHost(el)) found.push(el);
    return undefined;
  });
  return found;
};

const identityFields = (form) => [...new Set([...formElements(form), ...identityWithin(form)])].filter(isElement);

// Pressed by Enter in a field.
const defaultSubmitter = (form) => submittersOf(form).find((el) => isDisabled(el) === null) ?? null;

// Where the form leads; one without an address leads to wherever its script wants, whatever the route is called by then.
const actionPath = (form, submitter) => {
  const given = (submitter !== null && attr(submitter, "formaction")) || attr(form, "action") || "";
  if (given === "") return "";
  try {
    const url = new URL(given, DOC_BASE());
    return url.pathname + url.search;
  } catch {
    return given;
  }
};

// What one of several alike things is about: the text of its row or card, without times that count along.
const AGO = /\d+\s*(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|sek|sekunden?|minuten?|stunden?|tagen?)\b(\s*ago)?/giu;
const ALIKE_LEVELS = 6;
const hasTwin = (el) => {
  const up = parentNode(el);
  if (up === null || !isElement(up)) return false;
  const [tag, look] = [tagOf(el), attr(el, "class") ?? ""];
  for (let other = firstChild(up); other !== null; other = nextSibling(other))
    if (other !== el && isElement(other) && tagOf(other) === tag && (attr(other, "class") ?? "") === look) return true;
  return false;
};
const cardKey = (el, places) => {
  const row = places.rowKey(el);
  let text = row;
  let node = el;
  for (let level = 0; text === "" && node !== null && level < ALIKE_LEVELS; level += 1, node = composedParent(node)) {
    const tag = tagOf(node);
    if (tag === "body" || tag === "html" || tag === "main") break;
    if (hasTwin(node) && !FIELD_TAGS.has(tag) && tag !== "button") text = squash(rowText(node, { left: 120 })).slice(0, 80);
  }
  return text.replace(AGO, "#");
};

// Names of hidden fields may be made anew each time, and the only button of a form may change its label.
const formControl = (form, submitter, places) => {
  const names = identityFields(form).filter((el) => FIELD_TAGS.has(tagOf(el)) && !(tagOf(el) === "input" && inputType(el) === "hidden") && isFilledByPeople(el)).map((el) => attr(el, "name") ?? "");
  const named = names.some(Boolean) ? "" : WIN.location.pathname;
  const several = submittersOf(form).length > 1;
  const label = submitter === null || !several ? "" : `${attr(submitter, "name") ?? ""}:${attr(submitter, "value") ?? ""}:${nameOf(submitter, roleOf(submitter))}`;
  const action = actionPath(form, submitter);
  return ["form", (attr(form, "method") ?? "").toLowerCase(), action, action ? "" : named, label, cardKey(form, places)].join("|");
};

const messageBoxes = (el) => {
  for (let node = el, depth = 0; node !== null && depth < 8; depth += 1, node = composedParent(node)) {
    const boxes = identityWithin(node).filter(isComposer);
    if (boxes.length) return boxes;
  }
  return [];
};

// A label may count along ("Like 3", "Like 4"); what does not change names the control.
const elementControl = (el, places) => {
  const facts = identityOf(el, places);
  const id = facts.id && !looksGenerated(facts.id) ? facts.id : "";
  const stable = [id, facts.testid, facts.nameAttr, facts.href].join("|");
  const name = stable === "|||" ? facts.name.replace(/\p{N}+/gu, "#") : "";
  return ["element", WIN.location.pathname, facts.tag, facts.role, facts.type, stable, name, cardKey(el, places)].join("|");
};

const unreadableAmong = (selectors) =>
  selectors.filter((css) => {
    try {
      select(css);
      return false;
    } catch {
      return true;
    }
  });

questions.commitIdentity = ({ selectors = [], ...asked }) => ({ ...commitIdentity(asked), unreadable: unreadableAmong(selectors) });

const commitIdentity = ({ text = null, append = false, enter = false, sends = false }) => {
  const el = shield.armed?.target ?? null;
  if (el === null || !isConnected(el)) return { lost: true };
  const typed = text === null ? { el: null } : { el, text, append };
  const own = actingElement(el);
  const places = makePlaces();
  const form = formOwner(own);
  if (form !== null && tagOf(form) === "form" && (enter || isSubmitter(own, form))) {
    const submitter = isSubmitter(own, form) ? own : defaultSubmitter(form);
    return { control: formControl(form, submitter, places), fields: fieldsDigest(identityFields(form), typed, places, form) };
  }
  const boxes = !sends ? [] : isComposer(el) ? [el] : messageBoxes(own);
  if (boxes.length) return { control: `send|${WIN.location.pathname}`, fields: fieldsDigest(boxes, typed, places) };
  const place = places.placeOf(own);
  const region = place.dialog ?? place.form ?? place.landmark ?? documentBody(DOC) ?? documentElement(DOC);
  return { control: elementControl(own, places), fields: fieldsDigest(identityWithin(region), typed, places, region) };
};
