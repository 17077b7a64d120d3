// Notices: what a page puts up to say what became of a request, found by role, live region or class name, and what
// each one says. What nobody can read counts against success: a message that was not understood proves nothing.
for (const name of ["form.warningBanner.visible", "form.noticeUnclear.visible"]) trueBySight.add(name);

const LIVE_ROLES = new Set(["alert", "alertdialog", "status"]);
const NOTICE_MARKS = ["alert", "alerts", "message", "messages", "messagelist", "notice", "notices", "notification", "flash", "toast", "snackbar", "snack", "callout", "growl", "swal2"];
const TONE_MARKS = ["warning", "warn", "error", "errors", "danger", "success", "summary", "banner"];
const WARNING_MARKS = ["warning", "warn", "caution", "negative", "attention", "blocked"];
const GOOD_MARKS = ["success", "successful", "positive", "confirmation", "confirmed"];
const AMBER_CLASS = /^(text|bg|border|ring)-(amber|yellow|orange)-\d{2,3}$/;
const SPEAKING_CSS =
  '[role=alert],[role=alertdialog],[role=status],[aria-live=assertive],[aria-live=polite],output,' +
  ["alert", "messag", "notice", "notif", "flash", "toast", "snack", "callout", "growl", "swal2", "warn", "error", "danger", "success", "negative", "positive"]
    .map((part) => `[class*="${part}" i]`).join(",") + ',[id*="flash" i],[id*="messages" i],[data-testid*="toast" i],[data-testid*="alert" i]';
const NOTICES = { most: 120, levels: 4, plain: 80, plainChars: 200, millis: 60 };
// Asked first, because it is cheap: what holds more text than this is no message, however it is called.
const isWordy = (el) => textContentOf(el).length > 6 * LONGEST_NOTICE;

// Texts inside quotation marks are names of things: "Error 404" was saved.
const QUOTED = /"[^"]{1,120}"|[“„”][^“”„]{1,120}[“”]|«[^»]{1,120}»|‹[^›]{1,120}›|「[^」]{1,120}」|『[^』]{1,120}』|(?<=^|\s)['‘‚][^'’‘]{1,120}['’‘](?=[\s.,;:!?)]|$)/gu;
const unquoted = (text) => {
  const rest = text.replace(QUOTED, " … ");
  return /\p{L}/u.test(rest) ? rest : text;
};
const CLOSERS = /[×✕✖✗]/gu;

// Conversations and articles speak for themselves, not for what was just sent.
const CONTENT_ROLES = new Set(["article", "log", "feed", "navigation", "listbox", "menu", "tablist", "tooltip"]);
const inContent = (el) => closest(el, (node) => CONTENT_ROLES.has(roleOf(node)) || tagOf(node) === "label") !== null;

const marksAround = (el) => {
  const marks = labelsOn(el);
  let node = composedParent(el);
  for (let level = 0; level < NOTICES.levels && node !== null && tagOf(node) !== "body" && tagOf(node) !== "main"; level += 1, node = composedParent(node)) {
    if (isWordy(node) || queryDeep(node, FIELD_CSS, 1).length > 0) break;
    for (const mark of labelsOn(node)) marks.add(mark);
  }
  return marks;
};

const isNoticeLike = (el, marks) =>
  LIVE_ROLES.has(roleOf(el)) || hasAttribute(el, "aria-live") || NOTICE_MARKS.some((mark) => marks.has(mark)) ||
  TONE_MARKS.some((mark) => marks.has(mark)) || hasColour(el, RED_CLASS) || hasColour(el, GREEN_CLASS);

// Rows of a mailbox are called messages as well; a list of three alike is content.
const isOneOfMany = (el) => hasTwin(el) && !LIVE_ROLES.has(roleOf(el)) && (queryDeep(parentNode(el) ?? el, `.${escapeCss((attr(el, "class") ?? "x").trim().split(/\s+/)[0] || "x")}`, 3).length >= 3);

const noticesIn = (scope) => {
  const found = new Map();
  const deadline = now() + NOTICES.millis;
  for (const el of queryDeep(scope, SPEAKING_CSS, NOTICES.most)) {
    if (now() > deadline) break;
    if (isWordy(el) || !rendered(el) || INTERACTIVE.has(roleOf(el)) || tagOf(el) === "body" || tagOf(el) === "main" || tagOf(el) === "form") continue;
    const own = labelsOn(el);
    if (!isNoticeLike(el, own) || queryDeep(el, FIELD_CSS, 1).length > 0 || inContent(el)) continue;
    const text = squash(shownTextOf(el).replace(CLOSERS, " "));
    if (text.length < 2 || text.length > LONGEST_NOTICE || !/\p{L}/u.test(text)) continue;
    const known = found.get(text);
    const notice = known ?? { text, el, marks: new Set(), colours: new Set(), live: false, plainly: false };
    for (const mark of marksAround(el)) notice.marks.add(mark);
    if (hasColour(el, RED_CLASS)) notice.colours.add("red");
    if (hasColour(el, GREEN_CLASS)) notice.colours.add("green");
    if (hasColour(el, AMBER_CLASS)) notice.colours.add("amber");
    notice.live ||= LIVE_ROLES.has(roleOf(el)) || hasAttribute(el, "aria-live");
    notice.plainly ||= notice.live || NOTICE_MARKS.some((mark) => own.has(mark));
    if (known === undefined && !isOneOfMany(el)) found.set(text, notice);
  }
  return [...found.values()];
};

const deniesIt = (text) => among("not_done", without(foldWords(unquoted(text)), "no_failure"));
const turnsAway = (text) => mentions("turned_away", unquoted(text));
// A number before a word tells how many there are.
const COUNTS = /^[\s(]*\p{N}/u;

// success, failure, warning, unclear, or null for what says nothing about the request.
const isMarkedGood = ({ marks, colours }) => GOOD_MARKS.some((mark) => marks.has(mark)) || colours.has("green");
const toneOf = (notice) => {
  const { text, marks, colours, plainly } = notice;
  const bad = isMarkedBad(marks) || colours.has("red");
  const warns = WARNING_MARKS.some((mark) => marks.has(mark)) || colours.has("amber");
  const good = isMarkedGood(notice);
  const succeeds = namesSuccess(text, true);
  const denies = deniesIt(text);
  if (good && !bad && !warns) return succeeds || !(denies || turnsAway(text)) ? "success" : "failure";
  // What looks like an error and is no message speaks for its own corner of the page first; with the form it is read there.
  if (denies && !succeeds && plainly) return "failure";
  if (bad && !warns && plainly) return succeeds ? "warning" : "failure";
  if (bad || warns || denies || turnsAway(text) || (plainly && namesFailure(text))) return plainly || denies ? "warning" : null;
  if (succeeds) return "success";
  if (!plainly || COUNTS.test(text) || among("not_yet", foldWords(text))) return null;
  return "unclear";
};

// Headings and short paragraphs of a page that has nothing else to say.
const plainTexts = () => queryDeep(DOC, "h1,h2,h3,main p,body > p,strong", NOTICES.plain).filter((el) => !isWordy(el));
const plainDenials = (isNew) => {
  for (const el of plainTexts()) {
    if (!rendered(el) || inContent(el) || closest(el, (node) => tagOf(node) === "a" || tagOf(node) === "td") !== null) continue;
    const text = shownTextOf(el);
    if (text.length < 2 || text.length > NOTICES.plainChars || !isNew(text) || namesSuccess(text, true)) continue;
    if (deniesIt(text) || turnsAway(text) || (/^h\d$/.test(tagOf(el)) && namesFailure(text))) return text;
  }
  return null;
};

// What stood there before the action is no news, unless another document brought it again together with the form.
const rememberNotices = (watch) => {
  watch.base.tag = DOCUMENT_TAG;
  watch.base.notices = noticesIn(DOC).map((notice) => hashText(notice.text)).slice(0, 60);
};
const stoodBefore = (watch, text) => (watch.base.notices ?? []).includes(hashText(text));

const READ_AGAIN_MS = 20;
const noticesRead = new WeakMap();
// Three facts ask for the same at the same moment.
const noticesFor = (scope, watch) => {
  const known = noticesRead.get(watch);
  if (known !== undefined && known.scope === scope && now() - known.at < READ_AGAIN_MS) return known.list;
  const list = noticesIn(scope).map((notice) => {
    const old = stoodBefore(watch, notice.text);
    return { text: notice.text, old, tone: old ? null : toneOf(notice), good: notice.plainly && isMarkedGood(notice) };
  });
  noticesRead.set(watch, { scope, at: now(), list });
  return list;
};
const newOnes = (scope, watch, tone) => noticesFor(scope, watch).filter((notice) => notice.tone === tone && !notice.old).map((notice) => notice.text);

// A refusal that stood there before counts again where a new document shows the form again and nothing speaks for it.
const isOldComplaint = (scope, watch, text, form) => {
  const clean = squash(text.replace(CLOSERS, " "));
  if (watch.base.tag === undefined || watch.base.tag === DOCUMENT_TAG || !stoodBefore(watch, clean)) return false;
  return form === null || newOnes(scope, watch, "success").length > 0;
};
// Marked as a success, in whatever language.
const praisedIn = (scope, watch) => noticesFor(scope, watch).find((notice) => notice.tone === "success" && notice.good && !notice.old)?.text ?? null;
const refusedIn = (scope, watch) => newOnes(scope, watch, "failure")[0] ?? null;

facts["form.warningBanner.visible"] = (scope, watch) => {
  const said = newOnes(scope, watch, "warning")[0] ?? null;
  if (said !== null) return { v: true, s: said };
  if (newOnes(scope, watch, "success").length > 0) return { v: false, s: "" };
  const plainly = plainDenials((text) => !(watch.base.plain ?? []).includes(hashText(text)));
  return { v: plainly !== null, s: plainly ?? "" };
};

facts["form.noticeUnclear.visible"] = (scope, watch) => {
  const said = newOnes(scope, watch, "unclear")[0] ?? null;
  return { v: said !== null, s: said ?? "" };
};

// -- whether the form is gone

// Scripts that show a message after a redirect run when the page has loaded; a page without a word is given that long.
const SPEAKS_MS = 300;
const loaded = { at: readyState(DOC) === "complete" ? -Infinity : null };
listen(DOC, "readystatechange", () => {
  if (readyState(DOC) === "complete") loaded.at = now();
}, { passive: true });
const hadItsSay = () => {
  if (loaded.at === null && readyState(DOC) === "complete") loaded.at = now();
  if (loaded.at === null) return false;
  const left = loaded.at + SPEAKS_MS - now();
  if (left <= 0) return true;
  later(pokeWatches, left + 1);
  return false;
};

const fieldNames = (form) => fieldsOf(form).slice(0, 40).map((el) => attr(el, "name") ?? attr(el, "id") ?? "").filter(Boolean);
// The same form may come back with another address or a field more.
const resembles = (names, form) => {
  const own = new Set(fieldNames(form));
  const shared = names.filter((name) => own.has(name)).length;
  return names.length > 0 && shared * 2 >= names.length;
};

facts["form.gone"] = (_scope, watch) => {
  const { formKey: key, formNames: names = [], tag } = watch.base;
  // Without a look from before there is nothing it could be gone from.
  if (tag === undefined) return undefined;
  if (tag !== DOCUMENT_TAG && !hadItsSay()) return false;
  if (!key) return true;
  return !queryDeep(DOC, "form", 50).some((form) => (form === watch.form || formKey(form) === key || resembles(names, form)) && seenByEye(form)) &&
    !(watch.form && isConnected(watch.form) && seenByEye(watch.form));
};

// A form that sends by GET asks for a page and changes nothing.
facts["form.isQuery"] = (_scope, watch) => watch.base.formKey !== undefined && watch.base.formMethod === "get";
