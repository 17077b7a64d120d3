// What changed because of an action, told apart from what keeps changing anyway.
const history = new WeakMap();
const stampsOf = (el) => {
  let stamps = history.get(el);
  if (stamps === undefined) history.set(el, (stamps = []));
  return stamps;
};
const stamp = (el, at) => {
  const stamps = stampsOf(el);
  if (stamps.length && at - stamps[stamps.length - 1] < 1) return;
  stamps.push(at);
  if (stamps.length > 6) stamps.shift();
};

const elementOf = (node) => (isElement(node) ? node : parentNode(node) !== null && isElement(parentNode(node)) ? parentNode(node) : null);

// A place is restless when it changed twice in the last second, or keeps changing every second or so.
const restless = (el, at) => {
  const stamps = history.get(el);
  if (stamps === undefined) return false;
  const before = stamps.filter((moment) => moment <= at);
  const lastSecond = before.filter((moment) => at - moment <= 1000).length;
  return lastSecond >= 2 || (before.length >= 3 && at - before[before.length - 1] <= 1500 && at - before[0] <= 10000);
};
// What a restless place has just added is restless too.
const arrived = new WeakSet();
const restlessAround = (el, at) => {
  let node = el;
  for (let depth = 0; node !== null && depth < 6; depth += 1, node = composedParent(node)) {
    if (restless(node, at)) return true;
    if (!arrived.has(node)) return false;
  }
  return false;
};

const RECORDS_PER_BATCH = 200;
const resident = new MutationObserver((records) => {
  const at = now();
  // While the parser works every place is restless; that says nothing about the page.
  // What an action of ours brings about is no restlessness either.
  const ours = shield.armed !== null && shield.armed.pressedAt !== null;
  const skip = readyState(DOC) === "loading" || ours;
  for (let i = 0; i < Math.min(records.length, RECORDS_PER_BATCH) && !skip; i += 1) {
    const el = elementOf(records[i].target);
    if (el !== null) stamp(el, at);
    for (const node of records[i].addedNodes) if (isElement(node)) arrived.add(node);
  }
  if (at - lastAsked > 30000) {
    resident.disconnect();
    watching = false;
  }
});
let watching = false;
const watchResident = () => {
  if (watching) return;
  watching = true;
  resident.observe(DOC, { childList: true, subtree: true });
};
watchResident();
asked.push(watchResident);

const controlledBy = (el) => {
  const root = rootNode(el);
  const list = [];
  for (const id of (attr(el, "aria-controls") ?? "").trim().split(/\s+/)) {
    const other = id ? idIn(root, id) : null;
    if (other !== null) list.push(other);
  }
  if (tagOf(el) === "label" && labelControl(el)) list.push(labelControl(el));
  if (tagOf(el) === "summary" && composedParent(el) !== null) list.push(composedParent(el));
  return list;
};

const controlState = (el) => {
  const tag = tagOf(el);
  const parts = [attr(el, "aria-expanded"), attr(el, "aria-pressed"), attr(el, "aria-checked"), attr(el, "aria-selected"), attr(el, "open"), isDisabled(el), attr(el, "hidden")];
  if (tag === "input") parts.push(inputChecked(el), inputValue(el));
  else if (tag === "textarea") parts.push(areaValue(el));
  else if (tag === "select") parts.push(selectValue(el));
  else if (isEditableHost(el)) parts.push(innerTextOf(el));
  return JSON.stringify(parts);
};

const tracker = { run: null };

const startTracking = (el) => {
  stopTracking();
  const places = makePlaces();
  const place = places.placeOf(el);
  const controlled = controlledBy(el);
  const acting = actingElement(el);
  const run = {
    target: acting, scopes: [place.landmark ?? documentBody(DOC) ?? documentElement(DOC), ...controlled].filter(Boolean),
    followed: [...new Set([el, acting, ...controlled])], states: new Map(), focus: deepActive(), focusMoved: false,
    name: squash(textContentOf(acting)).slice(0, 300), url: pageAddress(), channels: new Set(), newText: [], alerts: [],
    lastStrong: null, observer: null, mutations: 0, cleared: false,
  };
  for (const node of run.followed) run.states.set(node, controlState(node));
  run.observer = new MutationObserver((records) => digest(run, records));
  const options = { childList: true, subtree: true, attributes: true, characterData: true, attributeOldValue: true };
  run.observer.observe(DOC, options);
  for (let root = rootNode(el); isShadow(root); root = rootNode(shadowHost(root))) run.observer.observe(root, options);
  tracker.run = run;
};

const stopTracking = () => {
  tracker.run?.observer.disconnect();
  tracker.run = null;
};

const strong = (run, channel) => {
  run.channels.add(channel);
  run.lastStrong = now();
};

const NOISE = new Set(["style", "class"]);
const digest = (run, records) => {
  const at = now();
  const pressedAt = shield.armed?.pressedAt ?? null;
  for (let i = 0; i < Math.min(records.length, RECORDS_PER_BATCH); i += 1) {
    const record = records[i];
    const el = elementOf(record.target);
    if (el === null) continue;
    // Only what moved before our pointer did is the page's own restlessness.
    if (pressedAt === null) {
      if (shield.armed === null || shield.armed.reached.length === 0) stamp(el, at);
      continue;
    }
    run.mutations += 1;
    if (!restlessAround(el, pressedAt)) weigh(run, record, el);
  }
};

const weigh = (run, record, el) => {
  const inTarget = composedContains(run.target, el);
  if (record.type === "attributes") {
    if (inTarget && (NOISE.has(record.attributeName) || !record.attributeName.startsWith("aria-"))) return;
    if (getAttribute(el, record.attributeName) === record.oldValue) return;
  }
  const scoped = run.scopes.some((scope) => composedContains(scope, el));
  if (inTarget && record.type !== "attributes") return;
  const added = record.type === "childList" ? [...record.addedNodes] : [];
  const news = added.some((node) => isElement(node) && announces(node)) || (record.type === "attributes" && !scoped && NOISE_OR_HIDDEN.has(record.attributeName) && announces(el));
  if (!scoped && !news) return;
  if (record.type === "childList" && added.length === 0 && record.removedNodes.length === 0) return;
  strong(run, "dom_mutation");
  noteText(run, record, el, added);
};
const NOISE_OR_HIDDEN = new Set(["style", "class", "hidden", "open"]);

const ALERTS = new Set(["alert", "status", "alertdialog", "dialog"]);
const announces = (el) => {
  if (!rendered(el)) return false;
  if (ALERTS.has(roleOf(el)) || (maybeControl(el) && visibleControl(el))) return true;
  let seen = 0;
  for (const inner of elementAll(el, "[role],button,a[href],input,select,textarea,dialog")) {
    if (++seen > 20) break;
    if ((ALERTS.has(roleOf(inner)) || maybeControl(inner)) && visibleControl(inner)) return true;
  }
  return false;
};

const noteText = (run, record, el, added) => {
  const sources = record.type === "childList" ? added : [el];
  for (const node of sources) {
    const holder = isElement(node) ? node : elementOf(node);
    if (holder === null || !isConnected(holder) || !shownText(holder)) continue;
    if (record.type === "attributes" && !NOISE_OR_HIDDEN.has(record.attributeName)) continue;
    const text = squash(isElement(node) ? namedText(node, 0, { left: 60 }) : dataOf(node));
    if (text === "") continue;
    const short = cut(text, 120);
    if (closest(holder, (up) => roleOf(up) === "alert") !== null && run.alerts.length < 3 && !run.alerts.includes(short)) run.alerts.push(short);
    if (run.newText.length < 3 && !run.newText.includes(short)) run.newText.push(short);
  }
};

const takeRecords = (run) => digest(run, run.observer.takeRecords());

const look = (run) => {
  takeRecords(run);
  if (shield.armed === null || shield.armed.pressedAt === null) return;
  for (const node of run.followed) {
    const state = controlState(node);
    if (state !== run.states.get(node)) {
      run.states.set(node, state);
      strong(run, "control_state");
    }
  }
  if (!run.cleared && run.scopes.length && !isConnected(run.scopes[0])) {
    run.cleared = true;
    strong(run, "dom_mutation");
  }
  const focus = deepActive();
  if (focus !== run.focus) {
    run.focus = focus;
    const ownEditable = focus !== null && composedContains(run.target, focus) && isTypable(focus);
    const other = focus !== null && !composedContains(run.target, focus) && !composedContains(focus, run.target);
    if (ownEditable || other) strong(run, "focus_moved");
  }
  const name = squash(textContentOf(run.target)).slice(0, 300);
  if (name !== run.name && isConnected(run.target)) {
    run.name = name;
    if (name && !restlessAround(run.target, shield.armed.pressedAt)) {
      strong(run, "dom_mutation");
      if (run.newText.length < 3) run.newText.push(cut(name, 120));
    }
  }
  if (pageAddress() !== run.url) {
    run.url = pageAddress();
    strong(run, "url_changed");
  }
};

const report = (run) => ({
  channels: [...run.channels], newText: run.newText, alerts: run.alerts, mutations: run.mutations,
  quietMs: run.lastStrong === null ? null : Math.round(now() - run.lastStrong), url: run.url,
  proof: shield.armed === null ? null : proofOf(shield.armed),
  foreign: shield.armed?.foreign && isConnected(shield.armed.foreign) ? factsOf(actingElement(shield.armed.foreign), makePlaces()) : null,
});

const effectSoFar = () => {
  if (tracker.run === null) return { lost: true };
  look(tracker.run);
  return report(tracker.run);
};

// Answers as soon as the first sign has gone quiet, or when the time is over.
questions.effect = ({ waitMs = 0, quietMs = 80 }) =>
  new Promise((resolve) => {
    const run = tracker.run;
    if (run === null) {
      resolve({ lost: true });
      return;
    }
    const end = now() + waitMs;
    const step = () => {
      look(run);
      const quiet = run.lastStrong !== null && now() - run.lastStrong >= quietMs;
      if (quiet || now() >= end) resolve(report(run));
      else later(step, Math.max(1, Math.min(20, end - now(), run.lastStrong === null ? 20 : run.lastStrong + quietMs - now())));
    };
    step();
  });

// Watch anew with the shield still up: what typing did is not what Enter does.
questions.again = () => {
  if (shield.armed === null || !isConnected(shield.armed.target)) return { lost: true };
  startTracking(shield.armed.target);
  return { acting: commitRoads(shield.armed.target, null, makePlaces())[0] };
};

// The press is over: the effect is still being watched, but whoever else uses the page is no longer in the way.
questions.relax = () => {
  if (shield.armed !== null) shield.armed.relaxed = true;
  return true;
};

questions.disarm = () => {
  stopTracking();
  shield.armed = null;
  return true;
};
