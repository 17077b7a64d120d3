// Whether a form is filled in properly, and what the page says about it afterwards.
for (const name of ["form.successIndicator.visible", "form.errorBanner.visible"]) trueBySight.add(name);

// -- which form

const formOfAction = () => {
  const el = shield.armed?.target ?? tracker.run?.target ?? null;
  if (el === null || !isConnected(el)) return null;
  return formOwner(el) ?? makePlaces().placeOf(el).form;
};

const FIELD_CSS = "input,select,textarea,[role=textbox],[role=combobox],[role=checkbox],[role=radiogroup],[contenteditable]";
const QUIET_INPUTS = new Set(["hidden", "submit", "button", "reset", "image"]);
const isField = (el) => !(tagOf(el) === "button" || tagOf(el) === "fieldset" || tagOf(el) === "output" || (tagOf(el) === "input" && QUIET_INPUTS.has(inputType(el))));

const fieldsOf = (form) => {
  const known = new Set();
  if (tagOf(form) === "form") {
    const list = formElements(form);
    for (let i = 0; i < Math.min(list.length, 1000); i += 1) if (isField(list[i])) known.add(list[i]);
  }
  for (const el of queryDeep(form, FIELD_CSS, 1000)) if (isField(el)) known.add(el);
  return [...known];
};

// What makes a form the same one after it was built anew.
const formKey = (form) =>
  hashText([attr(form, "id"), attr(form, "name"), attr(form, "action"), ...fieldsOf(form).slice(0, 40).map((el) => attr(el, "name") ?? attr(el, "id"))].join("\n"));

const onlyForm = () => {
  const shown = queryDeep(DOC, "form", 50).filter(seenByEye);
  return shown.length === 1 ? shown[0] : null;
};

// Null when there is none; undefined when it can't be told which one is meant.
const formFor = (scope, watch) => {
  if (scope !== DOC) {
    const around = closest(scope, (node) => tagOf(node) === "form");
    if (around !== null) return around;
    const inside = queryDeep(scope, "form", 2);
    return inside.length === 1 ? inside[0] : inside.length === 0 && fieldsOf(scope).length > 0 ? scope : undefined;
  }
  if (watch.form && isConnected(watch.form)) return watch.form;
  const own = formOfAction();
  if (own !== null) return own;
  const key = watch.base.formKey;
  const same = key ? queryDeep(DOC, "form", 50).find((form) => formKey(form) === key) : undefined;
  if (same !== undefined) return same;
  return key ? null : onlyForm() ?? undefined;
};

// Whether what is pressed, the form or dialog around it, or the page speaks of a removal; undefined without a control.
const isRemoval = (form) => {
  const el = shield.armed?.target ?? tracker.run?.target ?? null;
  if (el === null || !isConnected(el)) return undefined;
  const own = actingElement(el);
  const role = roleOf(own);
  const name = nameOf(own, role);
  const heading = queryAll(DOC, "h1")[0];
  const said = [name, otherReadings(own, tagOf(own), role, name), askedBy(makePlaces().placeOf(own).dialog), pageTitle(200)];
  if (heading) said.push(shownTextOf(heading).slice(0, 200));
  const ids = [attr(own, "id"), attr(own, "formaction"), attr(own, "data-testid"), WIN.location.pathname];
  if (form !== null) {
    said.push(...formWords(form, null).headings);
    ids.push(attr(form, "action"), attr(form, "id"), attr(form, "name"));
  }
  return said.some((text) => mentions("removes", text)) || ids.some((id) => id !== null && inIdentifier("removes", id));
};

// Kept from the first look on, in this document as the element, in the next one by its key.
const rememberForm = (watch) => {
  const asks = watch.refs.some((ref) => (ref.name ?? "").startsWith("form."));
  if (asks) {
    rememberNotices(watch);
    watch.base.plain = plainTexts().map((el) => hashText(shownTextOf(el)));
  }
  const form = formOfAction() ?? onlyForm();
  if (asks) watch.base.removes ??= isRemoval(form);
  if (form === null) return;
  watch.form = form;
  watch.base.formKey ??= formKey(form);
  watch.base.formNames ??= fieldNames(form);
  // A form without an address or a method of its own is a script's matter: what it sends can't be told.
  watch.base.formMethod ??= tagOf(form) === "form" && (attr(form, "method") ?? "").toLowerCase() !== "post" && hasAttribute(form, "action") ? "get" : "";
};

// -- validity

const NEGLECTED = new Set(["true", "grammar", "spelling"]);
const ariaInvalid = (el) => NEGLECTED.has((attr(el, "aria-invalid") ?? "").toLowerCase()) && seenByEye(el);

const CHECKED_CSS = "[aria-checked=true],input:checked";
const leftEmpty = (el) => {
  if (attr(el, "aria-required") !== "true" || isDisabled(el) !== null || !seenByEye(el)) return false;
  if (roleOf(el) === "radiogroup") return elementAll(el, CHECKED_CSS).length === 0;
  if (isCheckable(el)) return !checkedState(el);
  return holdsValue(el) && rawValue(el).trim() === "";
};

// The text a field itself points at as its error.
const pointedError = (el) => {
  const root = rootNode(el);
  const named = (attr(el, "aria-errormessage") ?? "").trim().split(/\s+/);
  for (const id of named) {
    const other = id === "" ? null : idIn(root, id);
    if (other !== null && attr(el, "aria-invalid") !== "false" && shownTextOf(other) !== "") return true;
  }
  for (const id of (attr(el, "aria-describedby") ?? "").trim().split(/\s+/)) {
    const other = id === "" ? null : idIn(root, id);
    if (other !== null && saysFailure(other, shownTextOf(other), true)) return true;
  }
  return false;
};

// Classes by which frameworks paint a refused field, on the field itself or on the part of the form that holds it alone.
const REFUSED_CLASS = /^((is|has)-(invalid|error|danger)|(mui-)?error|invalid|field_with_errors|.*(--|-status-|-has-)(error|invalid))$/i;
const isRefusedClass = (el) => (attr(el, "class") ?? "").split(/\s+/).some((name) => REFUSED_CLASS.test(name));
const paintedRefused = (el) => {
  let node = el;
  for (let level = 0; level < 3 && node !== null && tagOf(node) !== "form"; level += 1, node = composedParent(node)) {
    if (isRefusedClass(node) && seenByEye(node)) return level === 0 || fieldsOf(node).length === 1;
  }
  return false;
};

// What the page holds against a field. A page made by a server goes on saying so while the field is put right; what it
// said before the first key is no news, and pressing the button is how to find out.
const complaintOf = (el) => {
  const parts = [ariaInvalid(el) ? `aria ${attr(el, "aria-errormessage") ?? ""}` : "", paintedRefused(el) ? "painted" : ""];
  if (pointedError(el)) parts.push(["aria-errormessage", "aria-describedby"].map((name) => (attr(el, name) ? fromIds(el, attr(el, name)) : "")).join(" "));
  return parts.filter(Boolean).join(" ");
};
const editedUnder = new WeakMap();
listen(WIN, "input", (event) => {
  const el = event.isTrusted ? eventPath(event)[0] : null;
  if (el !== null && isElement(el) && !editedUnder.has(el)) editedUnder.set(el, complaintOf(el));
}, true);
const isComplainedOf = (el) => {
  const complaint = complaintOf(el);
  return complaint !== "" && editedUnder.get(el) !== complaint;
};

const isWrong = (el) => (isDisabled(el) === null && matches(el, ":invalid")) || leftEmpty(el) || isComplainedOf(el);
const fieldLabelKey = (el) => attr(el, "name") ?? attr(el, "id") ?? nameOf(el, roleOf(el));

facts["form.fields.valid"] = (scope, watch) => {
  const form = formFor(scope, watch);
  if (form === null || form === undefined) return undefined;
  const wrong = fieldsOf(form).filter(isWrong);
  return { v: wrong.length === 0, s: wrong.map(fieldLabelKey).join("\n").slice(0, 500) };
};

// -- what the page says

const labelsOn = (el) => new Set(identifierParts(`${attr(el, "class") ?? ""} ${attr(el, "id") ?? ""} ${testidOf(el)?.[1] ?? ""}`));
const BAD_MARKS = ["error", "errors", "danger", "invalid", "failure", "destructive"];
const MESSAGE_MARKS = ["message", "messages", "msg", "text", "feedback", "summary", "alert", "banner", "notice", "field", "form", "help", "helper", "hint"];
// Whole words, and compounds such as "errornote" or "errorlist".
const isCompound = (mark) => /^errors?[a-z]/.test(mark);
const isMarkedBad = (marks) => BAD_MARKS.some((mark) => marks.has(mark)) || [...marks].some(isCompound);
// Colours given by name are how some style sheets say it.
const RED_CLASS = /^(text|bg|border|ring)-(red|rose)-\d{2,3}$/;
const GREEN_CLASS = /^(text|bg|border)-(green|emerald)-\d{2,3}$/;
const hasColour = (el, pattern) => (attr(el, "class") ?? "").split(/\s+/).some((name) => pattern.test(name));

const without = (words, kind) => {
  const rest = [];
  for (let i = 0; i < words.length; i += 1) {
    const phrase = phrasesOf(kind).find((known) => standsAt(words, known.words, i));
    if (phrase === undefined) rest.push(words[i]);
    else i += phrase.words.length - 1;
  }
  return rest;
};

// A line that begins with a star explains what the star means.
const namesFailure = (text) => {
  if (/^\s*[*＊]/u.test(text)) return false;
  const words = without(foldWords(unquoted(text)), "no_failure");
  return among("error", words) || among("failure", words);
};

const LONGEST_NOTICE = 300;
// A class alone is enough on what is plainly the message of a form; elsewhere the words have to say it as well.
const saysFailure = (el, text, inForm) => {
  if (text.length < 2 || text.length > LONGEST_NOTICE || INTERACTIVE.has(roleOf(el))) return false;
  const marks = labelsOn(el);
  const role = roleOf(el);
  const alerting = role === "alert" || role === "alertdialog" || attr(el, "aria-live") === "assertive";
  const failing = namesFailure(text);
  if (namesSuccess(text, true) && !failing) return false;
  if (alerting) return failing || isMarkedBad(marks);
  if (role === "article" || role === "main") return false;
  if (!isMarkedBad(marks)) return failing && hasColour(el, RED_CLASS);
  return failing || (inForm && saysMessageOfForm(el, marks) && /\p{L}{2}/u.test(text) && !/^\s*[*＊]/u.test(text));
};
const saysMessageOfForm = (el, marks) =>
  MESSAGE_MARKS.some((mark) => marks.has(mark)) || [...marks].some(isCompound) || (/(^|\s)errors?(\s|$)/i.test(attr(el, "class") ?? "") && queryDeep(el, FIELD_CSS, 1).length === 0);

// That a record "was deleted" is a success where it was to be deleted; where it was to be saved it is gone.
const removal = { meant: true };
const speaksOfRemoval = (phrase) => among("removed", phrase);

const REACH_BACK = 8;
// Whether a phrase stands in a text unless what comes right before it denies or postpones it.
const affirmed = (words, phrase) => {
  if (!removal.meant && speaksOfRemoval(phrase)) return false;
  for (let at = 0; at + phrase.length <= words.length; at += 1) {
    if (!standsAt(words, phrase, at)) continue;
    const before = words.slice(Math.max(0, at - REACH_BACK), at);
    // "Ada sent you a file" tells what somebody did; "Sent your file" and "File sent" tell what came of it.
    const active = at > 0 && startingAt("objects", words, at + phrase.length) !== undefined;
    if (!active && !among("negation", before)) return true;
  }
  return false;
};

// Sentence by sentence: what one denies says nothing about the next.
const namesSuccess = (text, briefly) => {
  const kinds = briefly ? ["success", "success_short"] : ["success"];
  return (unquoted(text).match(/[^.!?…;|]+[.!?…;|]*/gu) ?? []).some((sentence) => {
    const words = without(foldWords(sentence), "no_failure");
    if (sentence.includes("?") || among("not_yet", words) || among("not_done", words)) return false;
    if (isPhrase("success_alone", sentence.split(",")[0])) return true;
    return kinds.some((kind) => phrasesOf(kind).some((phrase) => affirmed(words, phrase.words)));
  });
};

const ALERT_CSS = "[role=alert],[role=alertdialog],[aria-live=assertive]";
const BAD_CSS = '[class*="-red-"],[class*="-rose-"],[class*="error" i],[class*="danger" i],[class*="invalid" i],[class*="fail" i],[class*="destructive" i],[id*="error" i],[data-testid*="error" i]';
const NOTICE_CSS = '[role=status],[role=alert],[role=alertdialog],[aria-live=polite],[aria-live=assertive],output';
const TOAST_CSS = '[class*="-green-"],[class*="-emerald-"],[class*="messages--status" i],[class~="positive" i],[class*="response" i],[class*="toast" i],[class*="snack" i],[class*="success" i],[class*="notif" i],[class*="flash" i],[class*="confirm" i],[class*="alert" i],[class*="notice" i],[data-testid*="success" i],[data-testid*="toast" i]';
const TOAST_MARKS = ["toast", "snackbar", "snack", "success", "successful", "notification", "flash", "confirmation", "confirmed", "alert", "notice", "message"];
// Words that mean a notice only together.
const TOLD_MARKS = [["messages", "status"], ["positive", "message"], ["response", "output"]];
const HEADING_CSS = "h1,h2,[role=heading]";

// The part of the page that speaks for a form: itself and what stands around it.
const around = (form) => {
  let el = form;
  for (let level = 0; level < 2; level += 1) {
    const up = composedParent(el);
    if (up === null || tagOf(up) === "html") break;
    el = up;
    if (tagOf(el) === "body" || tagOf(el) === "main" || DIALOG_ROLES.has(roleOf(el))) break;
  }
  return el;
};

const failureIn = (scope, form, watch) => {
  const near = scope !== DOC ? scope : form ? around(form) : DOC;
  const candidates = new Set([...queryDeep(scope, ALERT_CSS), ...queryDeep(near, BAD_CSS)]);
  if (scope !== DOC) candidates.add(scope);
  for (const el of candidates) {
    if (!rendered(el)) continue;
    const text = shownTextOf(el);
    if (saysFailure(el, text, Boolean(form) && composedContains(form, el)) && !isOldComplaint(scope, watch, text, form)) return text;
  }
  return refusedIn(scope, watch);
};

facts["form.errorBanner.visible"] = (scope, watch) => {
  const form = formFor(scope, watch) ?? null;
  const said = failureIn(scope, form, watch);
  if (said !== null) return { v: true, s: said };
  const invalid = form === null ? [] : fieldsOf(form).filter(ariaInvalid);
  return invalid.length ? { v: true, s: `fields ${invalid.map(fieldLabelKey).join("\n").slice(0, 300)}` } : { v: false, s: "" };
};

const successIn = (scope, watch) => {
  const said = (el, briefly) => {
    if (!rendered(el) || INTERACTIVE.has(roleOf(el))) return null;
    const text = shownTextOf(el);
    if (text.length === 0 || text.length > LONGEST_NOTICE || !namesSuccess(text, briefly) || namesFailure(text)) return null;
    const marks = marksAround(el);
    return isMarkedBad(marks) || WARNING_MARKS.some((mark) => marks.has(mark)) ? null : text;
  };
  const toasts = queryDeep(scope, TOAST_CSS).filter((el) => {
    const marks = labelsOn(el);
    if (TOAST_MARKS.some((mark) => marks.has(mark)) || hasColour(el, GREEN_CLASS)) return true;
    return TOLD_MARKS.some((pair) => pair.every((mark) => marks.has(mark)));
  });
  const own = scope === DOC ? [] : [scope];
  for (const el of [...own, ...queryDeep(scope, NOTICE_CSS), ...toasts]) {
    const text = said(el, true);
    if (text !== null) return text;
  }
  for (const el of queryDeep(scope, HEADING_CSS, 60)) {
    const text = said(el, false);
    if (text !== null) return text;
  }
  return praisedIn(scope, watch);
};

facts["form.successIndicator.visible"] = (scope, watch) => {
  const text = successIn(scope, watch);
  return { v: text !== null, s: text ?? "" };
};

// -- whether it was sent

const noteSubmit = (watch, event) => {
  const form = eventPath(event)[0];
  if (!event.isTrusted || !isElement(form) || tagOf(form) !== "form") return;
  const key = watch.base.formKey;
  if (!key || form === watch.form || formKey(form) === key) watch.base.submitted = true;
};

facts["form.submitted"] = (scope, watch) => {
  if (!watch.armed) return undefined;
  if (watch.base.submitted) return { v: true, sure: true };
  if (!watch.base.formKey) return undefined;
  return formFor(scope, watch) === null;
};
