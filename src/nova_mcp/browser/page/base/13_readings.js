// What a control reads besides its name: drawn text, tips, values, labels, texts of pictures. A page can name a control
// one way and draw it another; the host takes the more dangerous of the two.
const READING_CHARS = 120;
const MOST_READINGS = 6;
const GLUED_CHARS = 32;
const TIPS = ["aria-label", "title", "alt", "aria-description", "data-tooltip"];
const READ_ROLES = new Set(["button", "link", "menuitem", "menuitemcheckbox", "menuitemradio"]);
const READ_TAGS = new Set(["button", "summary", "a", "area"]);
const READ_INPUTS = new Set(["submit", "button", "reset", "image"]);
const isRead = (el, tag, role) =>
  READ_TAGS.has(tag) || (tag === "input" ? READ_INPUTS.has(inputType(el)) : READ_ROLES.has(role));

// Everything laid out inside, hidden from readers or not; what its parts say of themselves goes to `tips`.
const drawnInside = (el, parts, tips, budget, except) => {
  const written = mayBeWrittenTo(el, firstChild(el) === null);
  if (written) parts.push(generatedText(el, "::before"));
  for (const child of composedChildren(el)) {
    if ((budget.left -= 1) <= 0) break;
    if (isText(child)) parts.push(dataOf(child).slice(0, MOST_TEXT));
    else if (isElement(child) && child !== except) drawnPart(child, parts, tips, budget, except);
  }
  if (written) parts.push(generatedText(el, "::after"));
};
const drawnPart = (el, parts, tips, budget, except) => {
  const tag = tagOf(el);
  if (tag === "svg:title") tips.push(textContentOf(el));
  if (SILENT.has(tag) || !rendered(el)) return;
  if (hasAttributes(el)) tellTips(el, tag, tips);
  drawnInside(el, parts, tips, budget, except);
};
const tellTips = (el, tag, tips) => {
  for (const name of TIPS) {
    const tip = attr(el, name);
    if (tip !== null) tips.push(tip.slice(0, MOST_TEXT));
  }
  if (tag === "input" && READ_INPUTS.has(inputType(el))) tips.push(inputValue(el));
};

// The text twice: its parts apart, and as one, for a word may be split over them.
const drawnTwice = (el, tips, except = null) => {
  const parts = [];
  drawnInside(el, parts, tips, { left: MOST_NODES }, except);
  return [squash(parts.join(" ")), squash(parts.join("").replace(THIN_BLANKS, ""))];
};
// Blanks so thin that a word with one inside is read as one word.
const THIN_BLANKS = /[\u2006\u2008-\u200a\u202f]/gu;
const withoutThinBlanks = (text) => {
  const glued = text.replace(THIN_BLANKS, "");
  return glued === text ? "" : squash(glued);
};

const withoutBlanks = (text) => text.replace(/\s+/gu, "");

// A control without ink of its own that lies over nearly all of what holds it is taken for that.
const drawnUnder = (el, tips) => {
  const outer = composedParent(el);
  if (outer === null || styleOf(el).position !== "absolute") return "";
  const [own, around] = [boxOf(el), boxOf(outer)];
  const covers = own.width * own.height >= 0.6 * around.width * around.height;
  return covers ? drawnTwice(outer, tips, el)[0] : "";
};

const otherReadings = (el, tag, role, name) => {
  if (!isRead(el, tag, role)) return "";
  const only = firstChild(el);
  const plain = only !== null && isText(only) && nextSibling(only) === null && openShadow(el) === null;
  const texts = [];
  if (hasAttributes(el)) tellTips(el, tag, texts);
  let [apart, glued] = plain && !mayBeWrittenTo(el, false) ? [squash(dataOf(only).slice(0, MOST_TEXT)), withoutThinBlanks(dataOf(only).slice(0, MOST_TEXT))] : drawnTwice(el, texts);
  if (apart === "" && tag !== "input") apart = drawnUnder(el, texts);
  if (withoutBlanks(apart) !== withoutBlanks(name)) texts.unshift(apart);
  if (glued.length <= GLUED_CHARS) texts.push(glued);
  for (const label of labelsFor(el)) texts.push(...drawnTwice(label, texts, el).slice(0, 1));
  const told = new Set(texts.map((text) => cut(squash(text), READING_CHARS)));
  told.delete("");
  told.delete(name);
  return [...told].slice(0, MOST_READINGS).join("\n");
};

// -- what else says that a press changes something

// Markup of libraries that send a form or a request by themselves, or ask first whether that is meant.
const CHANGING = ["hx-post", "hx-put", "hx-patch", "hx-delete", "data-hx-post", "data-hx-put", "data-hx-patch", "data-hx-delete"]
  .map((name) => `[${name}]`).join(",") +
  ",[data-method]:not([data-method=get i]),[data-turbo-method]:not([data-turbo-method=get i]),[data-confirm],[data-turbo-confirm]";
const sendsChange = (el) => matches(el, CHANGING);

// An inline script that submits a form, as a list that sends itself once something is chosen has one.
const SUBMITTING = ["onclick", "onchange", "oninput"].map((name) => `[${name}*="ubmit("]`).join(",");
const submitsByScript = (el) => matches(el, SUBMITTING);

// A script that submits once a field was filled or left: the field's own, or that of its form, which hears its fields.
const FILLING = ["onchange", "oninput", "onblur", "onfocusout", "onkeyup", "onkeydown", "onkeypress"].map((name) => `[${name}*="ubmit("]`).join(",");
const submitsWhenFilled = (el, owner) => matches(el, FILLING) || (owner !== null && matches(owner, FILLING));

// What a dialog asks: its name, its first heading or, where it is short, all of it.
const askedBy = (dialog) =>
  dialog === null ? "" : once("asks", dialog, () => {
    const name = nameOf(dialog, roleOf(dialog));
    const heading = queryAll(dialog, "h1,h2,h3,h4,[role=heading]")[0];
    const [text] = drawnTwice(dialog, []);
    const parts = [name, heading ? drawnTwice(heading, [])[0] : "", text.length <= 200 ? text : ""];
    return cut(parts.filter(Boolean).join(" | "), 300);
  });

// Elements up to five levels above the number of a card.
const cardHalo = () =>
  once("cards", DOC, () => {
    const halo = new Set();
    for (const field of queryDeep(DOC, "input", 300)) {
      if (!/(^|\s)cc-(number|csc)(\s|$)/i.test(attr(field, "autocomplete") ?? "") && !holdsCard(field)) continue;
      let node = composedParent(field);
      for (let depth = 0; node !== null && depth < 5; depth += 1, node = composedParent(node)) {
        const tag = tagOf(node);
        if (tag === "body" || tag === "html" || tag === "main") break;
        halo.add(node);
      }
    }
    return halo;
  });
const nearCard = (el) => {
  const halo = cardHalo();
  return halo.size > 0 && closest(el, (node) => halo.has(node)) !== null;
};

// Whether Enter in a box sends what stands there: it says so, or a control that sends stands beside it.
const HEARS_KEYS = ["onkeydown", "onkeypress", "onkeyup"];
const hearsEnter = (el) => HEARS_KEYS.some((name) => /Enter|\b13\b/.test(attr(el, name) ?? ""));
const sendsOnEnter = (el) => {
  if (!(isComposer(el) || isTextBox(el)) || isSearchField(el)) return false;
  if (hearsEnter(el)) return true;
  if (sharesForm(el)) return false;
  const box = tagOf(el) !== "input";
  return (box && (saysMessage(el) || enterSends(el))) || sendControls(el).some(({ score }) => score >= (box ? 2 : 3));
};
