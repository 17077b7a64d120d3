// Keys for whatever has the focus.
const keyTarget = () => {
  const active = deepActive();
  return active ?? documentBody(DOC) ?? documentElement(DOC);
};

// The control a key works on by itself: the option that is marked in a list, or the one with the focus.
const markedOption = (el) => {
  const id = attr(el, "aria-activedescendant");
  const option = id ? idIn(rootNode(el), id.trim()) : null;
  return option !== null && option !== el ? option : null;
};

// What a key would set off: the focused control, what it marks as current and, for a select, the choice itself.
const keyRoads = (el, { activates, access = "" }, places) => {
  const halo = composerHalo();
  const typed = isTypable(el) || isEditableHost(el);
  const roads = commitRoads(el, activates && !typed ? el : null, places);
  const marked = markedOption(el);
  if (marked !== null) {
    const facts = commitFacts(marked, places, halo, true);
    roads.push({ ...facts, menuName: facts.menuName || nameOf(el, roleOf(el)) });
  }
  if (tagOf(el) === "select") {
    const option = selectOptions(el)[0] ?? choicesOf(el)[0];
    if (option) roads.push({ ...commitFacts(option, places, halo, true), menuName: nameOf(el, roleOf(el)), submitter: submitsByScript(el) });
  }
  const pressed = accessedBy(access);
  for (const other of pressed) roads.push(...commitRoads(other, other, places, halo));
  return [roads, pressed.length > 0];
};

// What Alt and a letter press wherever the focus is, in the document and in each tree of its own inside.
const accessedBy = (access) =>
  access === "" ? [] : queryDeep(DOC, "[accesskey]", 200).filter((el) => tokensOf((attr(el, "accesskey") ?? "").toLowerCase()).includes(access)).slice(0, 5);

// Keys go to the focus, wherever the page moves it: only the element that was judged may get them. Runs after the
// shield's own listener, which lets everything inside its target pass.
const isRoot = (node) => node === documentBody(DOC) || node === documentElement(DOC);
const keepExact = (event) => {
  const armed = shield.armed;
  if (armed === null || armed.relaxed || !armed.exact || !event.isTrusted) return;
  const [first] = eventPath(event);
  if (isElement(first) && (isRoot(armed.target) ? isRoot(first) : composedContains(armed.target, first))) return;
  armed.reached.pop();
  armed.stopped.push(event.type);
  stop(event);
};
const installKeys = () => {
  for (const type of KEYS) listen(WIN, type, keepExact, { capture: true, passive: false });
};
installKeys();

const hasKeyboard = uncurry(Document.prototype.hasFocus);

const armKeys = (el) => {
  raise(el, "type", { x: 0, y: 0, hit: el });
  shield.armed.exact = true;
  installKeys();
};

const focusFacts = (el, stroke) => {
  const places = makePlaces();
  const [[acting, ...alsoActing], presses] = keyRoads(el, stroke, places);
  return { element: factsOf(el, places), acting, alsoActing, presses, typable: isTypable(el) || isEditableHost(el) };
};

// Arms the shield for keys around what has the focus; a named element is focused first.
questions.keysReady = ({ focus, ...stroke }) => {
  const named = focus ? shield.armed?.target ?? null : null;
  if (focus && (named === null || !isConnected(named))) return { focused: false };
  if (named !== null) focusOn(tagOf(named) === "label" ? labelControl(named) ?? named : named, { preventScroll: true });
  const el = keyTarget();
  if (named !== null && !composedContains(named, el) && !acceptedFor(el).has(named)) return { focused: false };
  armKeys(el);
  if (EMBEDDING.has(tagOf(el))) return { focused: true, inFrame: true };
  startTracking(el);
  return {
    focused: true, inFrame: false, ...focusFacts(el, stroke), standing, secret: isSecret(el), url: pageAddress(), recentPaths: recentPaths(),
  };
};

// A key may have moved the focus: the next one belongs to the element that has it now.
questions.keysAgain = (stroke) => {
  const before = shield.armed;
  const el = keyTarget();
  if (before === null || EMBEDDING.has(tagOf(el))) return { lost: true };
  armKeys(el);
  Object.assign(shield.armed, { reached: before.reached, stopped: before.stopped, foreign: before.foreign, pressedAt: before.pressedAt });
  return { lost: false, ...focusFacts(el, stroke) };
};

// No key and no text may arrive in this document while another one is being typed into.
questions.fence = () => {
  if (shield.armed === null) raise(documentElement(DOC), "type", { x: 0, y: 0, hit: null });
  Object.assign(shield.armed, { mode: "type", fenced: true });
  return true;
};

// The document around a frame takes no keys while one inside it does.
questions.keysElsewhere = () => {
  if (shield.armed !== null) Object.assign(shield.armed, { mode: "type", exact: true });
  return true;
};

// Where the focus is: nowhere, in this document, or in a frame of it.
questions.keysAt = () => {
  const active = deepActive();
  const inFrame = active !== null && EMBEDDING.has(tagOf(active));
  return { has: hasKeyboard(DOC), inFrame, element: active === null || inFrame ? null : factsOf(active, makePlaces()) };
};
