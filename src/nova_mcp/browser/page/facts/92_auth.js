// Signing in: what the page shows of it, weighed. A probe that fails or contradicts itself says nothing, never no.
const MOST_CONTROLS = 4000;
const TYPED = new Set(["text", "email", "tel", "password", "number", "url"]);
const PRESSABLE = new Set(["button", "link", "menuitem", "tab", "menuitemradio"]);

// Facts of one reading share one look at the page; the look is over when the reading is.
const looks = new Map();
const once = (key, scope, make) => {
  if (looks.size === 0) Promise.resolve().then(() => looks.clear());
  let known = looks.get(key);
  if (known === undefined) looks.set(key, (known = new Map()));
  if (!known.has(scope)) known.set(scope, make());
  return known.get(scope);
};

const autocompleteOf = (el) => (attr(el, "autocomplete") ?? "").toLowerCase().split(/\s+/);
const isSingleChar = (el) => TYPED.has(inputType(el)) && attr(el, "maxlength") === "1";

// A part of the page that can't be looked into and is large enough to hold a form.
const BLIND_CSS = "iframe,frame,:empty:not(div,span,br,img,input,hr,td,p,i,a,li,path,rect,circle,use,script,style,link,meta,source,textarea,button)";
const isBlind = (el) => {
  const tag = tagOf(el);
  const frame = tag === "iframe" || tag === "frame";
  const closed = tag.includes("-") && !tag.startsWith("svg:") && openShadow(el) === null && matches(el, ":defined");
  if ((!frame && !closed) || !rendered(el)) return false;
  const box = boxOf(el);
  return box.width >= 180 && box.height >= 80 && !offPage(box);
};

const PRESSABLE_CSS = 'button,a[href],summary,input[type=submit],input[type=button],input[type=image],[role=button],[role=link],[role=menuitem],[role=menuitemradio],[role=tab],[onclick],[type=submit]';
const AUTH_LISTS = ["sign_in", "sign_up", "sign_out", "forgot_password", "proceed", "account", "provider"];
// Seeing whether a control can be seen is dear; only those that could matter are looked at.
const mattersToAuth = (el) => {
  const name = labelled(el);
  if (foldWords(name).length <= 12 && AUTH_LISTS.some((kind) => mentions(kind, name))) return true;
  const form = controlForms.get(tagOf(el))?.(el) ?? null;
  return (form !== null && isSubmitter(el, form)) || localName(el).includes("-") || attr(el, "aria-expanded") === "false" || leadsToLogout(el);
};

const authLook = (scope) => once("auth", scope, () => {
  const all = queryDeep(scope, PRESSABLE_CSS, MOST_CONTROLS);
  const inputs = queryDeep(scope, "input", 1000).filter((el) => TYPED.has(inputType(el)) && !hasAttribute(el, "readonly") && visibleControl(el));
  const headings = queryDeep(scope, "h1,h2,h3,h4,h5,h6,[role=heading],legend", 200).filter(shownText);
  const pressable = all.filter((el) => PRESSABLE.has(roleOf(el)) && mattersToAuth(el));
  const body = documentBody(DOC);
  // A page that shows nothing yet has not said that nobody is signed in.
  const empty = inputs.length + headings.length === 0 && (body === null || (!all.some(visibleControl) && squash(innerTextOf(body)) === ""));
  return {
    inputs, headings, pressable, shown: pressable.filter(visibleControl),
    cutShort: all.length >= MOST_CONTROLS,
    unsure: readyState(DOC) === "loading" || empty || queryDeep(scope, BLIND_CSS, 500).some(isBlind),
  };
});

const alertsIn = (scope) => once("alerts", scope, () => queryDeep(scope, ALERT_LIKE_CSS, 400).filter((el) => isAlertLike(el) && shownText(el)));
const ALERT_LIKE_CSS = '[role=alert],[role=alertdialog],[aria-live=assertive],[class*="error" i],[class*="danger" i],[class*="invalid" i],[class*="alert" i],[class*="warning" i]';
const ALERT_CLASS = /(^|[-_\s])(errors?[a-z]*|danger|invalid|alert|warning)([-_\s]|$)/i;
const isAlertLike = (el) => {
  const role = attr(el, "role");
  if (role === "alert" || role === "alertdialog" || attr(el, "aria-live") === "assertive") return true;
  const given = attr(el, "class");
  return given !== null && !maybeControl(el) && ALERT_CLASS.test(given);
};

const labelled = (el) => once("name", el, () => nameOf(el, roleOf(el)));
const spoken = (el) => `${labelled(el)} ${attr(el, "placeholder") ?? ""}`;

// -- forms to sign in with

const signsIn = (el) => leads("sign_in", labelled(el)) && !isFederated(el);
const signsUp = (el) => leads("sign_up", labelled(el));
const proceeds = (el) => leads("proceed", labelled(el), 3);

const isFederated = (el) => {
  const name = labelled(el);
  if (name === "" || foldWords(name).length > 9 || mentions("sign_up", name) || /\bpay\b/i.test(name)) return false;
  return mentions("federated", name) && mentions("provider", name);
};

// The form of a field; without one, the nearest part of the page that also holds a control to go on with.
const authBox = (look, field) => {
  const form = formOwner(field);
  if (form !== null) return form;
  let node = composedParent(field);
  for (let depth = 0; node !== null && depth < 6; depth += 1, node = composedParent(node)) {
    const holds = (el) => composedContains(node, el) && formOwner(el) === null && (signsIn(el) || signsUp(el) || proceeds(el));
    if (look.shown.some((el) => isButtonish(el) && holds(el))) return node;
  }
  return null;
};

const inBox = (box, el) => box !== null && (tagOf(box) === "form" ? formOwner(el) === box : composedContains(box, el));

// An anchor that leads nowhere is a button in all but name.
const isButtonish = (el) => roleOf(el) === "button" || (tagOf(el) === "a" && !isDestination(attr(el, "href")));

const boxSubmits = (look, box) => {
  if (box === null) return [];
  const within = look.shown.filter((el) => inBox(box, el) && !isFederated(el));
  const real = within.filter((el) => isSubmitter(el, formOwner(el)));
  return real.length ? real : within.filter((el) => isButtonish(el) && (signsIn(el) || signsUp(el) || proceeds(el)));
};

const passwordForms = (look) => {
  const groups = new Map();
  for (const field of look.inputs) {
    if (inputType(field) !== "password" || isSingleChar(field) || autocompleteOf(field).includes("one-time-code")) continue;
    const box = authBox(look, field);
    const key = box ?? field;
    if (!groups.has(key)) groups.set(key, { kind: "password", box, passwords: [] });
    groups.get(key).passwords.push(field);
  }
  return [...groups.values()].map((form) => {
    const submits = boxSubmits(look, form.box);
    const tokens = form.passwords.flatMap(autocompleteOf);
    const registers = form.passwords.length > 1 || (tokens.includes("new-password") && !tokens.includes("current-password"));
    const action = submits.some(signsIn);
    return {
      ...form, submits, action, registers, password: form.passwords[0], username: usernameFor(look, form),
      unclear: !action && submits.some(signsUp), base: submits.length ? 0.9 : 0.65,
    };
  });
};

const isIdentifier = (el) => {
  const type = inputType(el);
  if (!["text", "email", "tel"].includes(type) || isSingleChar(el)) return false;
  if (autocompleteOf(el).some((token) => token === "username" || token === "webauthn" || token === "email")) return true;
  if (autocompleteOf(el).includes("one-time-code") || mentions("one_time_code", spoken(el))) return false;
  return type === "email" || mentions("identifier", spoken(el)) || inIdentifier("identifier", attr(el, "name") ?? "") || inIdentifier("identifier", attr(el, "id") ?? "");
};

// The field for the account stands before the password; a named one wins over a mere neighbour.
const usernameFor = (look, form) => {
  const password = form.passwords[0];
  const before = look.inputs.filter(
    (el) => ["text", "email", "tel"].includes(inputType(el)) && inBox(form.box, el) && (comparePosition(el, password) & 4) !== 0,
  );
  return before.findLast(isIdentifier) ?? before.at(-1) ?? null;
};

const saysSignIn = (look, box) => {
  if (look.headings.some((el) => mentions("sign_in", namedText(el, 0, { left: 60 })))) return true;
  if (mentions("sign_in", pageTitle(400))) return true;
  if (box === null) return false;
  const layer = closest(box, (node) => DIALOG_ROLES.has(roleOf(node)));
  return [box, layer].some((el) => el !== null && mentions("sign_in", labelled(el))) || inIdentifier("sign_in", attr(box, "action") ?? "");
};

const identityForms = (look) => {
  const found = [];
  for (const field of look.inputs) {
    if (!isIdentifier(field)) continue;
    const box = authBox(look, field);
    const typed = look.inputs.filter((el) => (box === null ? el === field : inBox(box, el)));
    if (typed.length !== 1) continue;
    const submits = boxSubmits(look, box);
    const named = autocompleteOf(field).some((token) => token === "username" || token === "webauthn");
    const action = submits.some(signsIn);
    const onward = action || submits.some(proceeds) || (named && submits.length > 0);
    if (submits.some(signsUp) || (submits.length > 0 && !onward)) continue;
    if (!action && !named && !saysSignIn(look, box)) continue;
    found.push({ kind: "identity", box, submits, action, username: field, password: null, base: onward ? 0.75 : 0.6 });
  }
  return found;
};

const loginForms = (scope) => once("logins", scope, () => {
  const look = authLook(scope);
  const forgot = look.shown.some((el) => mentions("forgot_password", labelled(el)));
  const forms = [...passwordForms(look), ...identityForms(look)];
  for (const form of forms) {
    form.score = Math.min(1, form.base + (forgot ? 0.1 : 0) + (form.action ? 0.1 : 0));
    if (form.registers) form.score = Math.min(form.score, 0.2);
  }
  if (!forms.some((form) => form.score >= 0.5)) {
    const buttons = look.shown.filter(isFederated);
    if (buttons.length) forms.push({ kind: "federated", box: null, submits: buttons, score: Math.min(1, 0.55 + (forgot ? 0.1 : 0)), username: null, password: null });
  }
  return forms.sort((left, right) => right.score - left.score);
});

// -- verdicts

const triState = (score, failed) => (score >= 0.5 ? true : score >= 0.2 || failed ? undefined : false);

const loginWall = (scope) => {
  const look = authLook(scope);
  const [best] = loginForms(scope);
  return best?.unclear ? undefined : triState(best?.score ?? 0, look.unsure || look.cutShort);
};

const leadsToLogout = (el) => {
  const path = hrefPath(el);
  return path !== "" && isPhrase("sign_out", path.split("/").at(-1).replace(/\.[a-z]{2,4}$/, ""));
};
const signsOut = (el) => {
  const name = labelled(el);
  return (leads("sign_out", name) && !mentions("unsubscribe", name)) || leadsToLogout(el);
};

// In a closed menu whose opener can be seen, a control is a click away; anything else that is hidden does not count.
const inClosedMenu = (look, el) => {
  const details = closest(el, (node) => tagOf(node) === "details");
  if (details !== null && !detailsOpen(details)) return visibleControl(details);
  return look.shown.some((opener) => attr(opener, "aria-expanded") === "false" && controlledBy(opener).some((panel) => composedContains(panel, el)));
};

const loggedIn = (scope) => {
  const look = authLook(scope);
  const out = look.pressable.some((el) => signsOut(el) && (visibleControl(el) || inClosedMenu(look, el)));
  const accounts = new Set(look.shown.map((el) => phraseIn("account", labelled(el))).filter((phrase) => phrase !== null)).size;
  let score = out ? 0.95 : accounts >= 3 ? 0.8 : accounts === 2 ? 0.45 : accounts === 1 ? 0.2 : 0;
  if (loginWall(scope) === true) score = Math.min(score, 0.3);
  // A page that offers to sign in beside the signs of an account contradicts itself.
  else if (score >= 0.5 && look.shown.some((el) => isPhrase("sign_in", labelled(el)))) return undefined;
  return triState(score, look.unsure || look.cutShort);
};

const codeFields = (look) => {
  const named = look.inputs.filter((el) => autocompleteOf(el).includes("one-time-code"));
  if (named.length) return { score: 0.9, fields: named };
  const groups = new Map();
  for (const el of look.inputs) {
    if (!isSingleChar(el)) continue;
    const up = composedParent(el);
    const key = formOwner(el) ?? (up === null ? null : composedParent(up)) ?? up;
    groups.set(key, [...(groups.get(key) ?? []), el]);
  }
  const boxes = [...groups.values()].find((list) => list.length >= 4 && list.length <= 8);
  if (boxes !== undefined) return { score: 0.7, fields: boxes };
  const likely = look.inputs.filter((el) => mentions("one_time_code", spoken(el)));
  // A field that only says so is too little for a yes and too much for a no.
  return { score: likely.length ? 0.2 : 0, fields: [] };
};

const mfaChallenge = (scope) => {
  const look = authLook(scope);
  return triState(codeFields(look).score, look.unsure);
};

const failsToSignIn = (text) => text !== "" && (mentions("error", text) || mentions("auth_error", text));
const shownWords = (el) => cut(squash(namedText(el, 0, { left: 120 })), 300);

const nearBox = (box, el) => {
  let node = box;
  for (let depth = 0; node !== null && depth <= 4; depth += 1, node = composedParent(node)) {
    if (composedContains(node, el)) return true;
    if (tagOf(node) === "body") return false;
  }
  return false;
};

const invalidWords = (el) => {
  if (!isInvalid(el)) return "";
  return ["aria-errormessage", "aria-describedby"].map((name) => (attr(el, name) ? fromIds(el, attr(el, name)) : "")).join(" ").trim();
};

const errorStamp = (el, words) => `${DOCUMENT_TAG}.${numberOf(el)}:${hashText(words)}`;

const authError = (scope) => {
  const look = authLook(scope);
  const boxes = loginForms(scope).filter((form) => form.score >= 0.5).map((form) => form.box ?? form.password ?? form.username ?? form.submits[0]);
  for (const field of codeFields(look).fields) boxes.push(formOwner(field) ?? field);
  for (const box of boxes) {
    const fault = alertsIn(scope).find((el) => nearBox(box, el) && failsToSignIn(shownWords(el)));
    if (fault !== undefined) return { v: true, s: errorStamp(fault, shownWords(fault)) };
    const field = look.inputs.find((el) => nearBox(box, el) && failsToSignIn(invalidWords(el)));
    if (field !== undefined) return { v: true, s: errorStamp(field, invalidWords(field)) };
  }
  return triState(0, look.unsure);
};

const STAGES = { password: "login_wall", identity: "identity_step", federated: "federated_login" };
const authStage = (scope) => {
  const [mfa, wall, inside] = [mfaChallenge(scope), loginWall(scope), loggedIn(scope)];
  if (mfa === true) return "mfa_challenge";
  if (wall === true) return STAGES[loginForms(scope)[0].kind];
  if (inside === true) return "authenticated";
  return mfa === undefined || wall === undefined || inside === undefined ? undefined : "public_page";
};

for (const name of ["auth.loginWallVisible", "auth.mfaChallenge", "auth.authError"]) trueBySight.add(name);
facts["auth.loginWallVisible"] = loginWall;
facts["auth.loggedIn"] = loggedIn;
facts["auth.mfaChallenge"] = mfaChallenge;
facts["auth.authError"] = authError;
facts["auth.stage"] = authStage;

questions.auth = () => {
  const error = authError(DOC);
  return {
    stage: authStage(DOC) ?? "unknown", loggedIn: loggedIn(DOC) ?? null, loginWallVisible: loginWall(DOC) ?? null,
    mfaChallenge: mfaChallenge(DOC) ?? null, authError: (typeof error === "object" ? error.v : error) ?? null,
  };
};
