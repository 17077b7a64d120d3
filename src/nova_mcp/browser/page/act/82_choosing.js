// Controls whose state can be set: selects, lists, radio buttons, checkboxes and switches.
const SWITCH_ROLES = new Set(["checkbox", "switch", "menuitemcheckbox"]);
const RADIO_ROLES = new Set(["radio", "menuitemradio"]);
const allowsSeveral = getter(HTMLSelectElement.prototype, "multiple");
const shownRows = getter(HTMLSelectElement.prototype, "size");
const setChosenIndex = uncurry(Object.getOwnPropertyDescriptor(HTMLSelectElement.prototype, "selectedIndex").set);
const optionValueOf = getter(HTMLOptionElement.prototype, "value");
const optionIsOn = getter(HTMLOptionElement.prototype, "selected");
const turnOption = uncurry(Object.getOwnPropertyDescriptor(HTMLOptionElement.prototype, "selected").set);
const SHOWN_CHOICES = 20;
const LABEL_CHARS = 200;

// What the current call chooses from; kept between its questions.
const chooser = { el: null, kind: null, wanted: [], checked: null, shownBefore: "", labels: [], listsBefore: new Set(), silent: null };

const radiosIn = (el) => queryDeep(el, "input[type=radio],[role=radio]", 200).filter((node) => RADIO_ROLES.has(roleOf(node)));

const choiceKind = (el) => {
  const tag = tagOf(el);
  if (tag === "select") return "select";
  const role = roleOf(el);
  if (RADIO_ROLES.has(role) || role === "radiogroup") return "radio";
  if (role === "switch") return "switch";
  if (SWITCH_ROLES.has(role)) return "checkbox";
  if (role === "listbox") return "listbox";
  if (role === "option" && tag !== "option") return "option";
  if (tag === "input") return hasAttribute(el, "list") ? null : role === "combobox" ? "combobox" : null;
  if (hasAttribute(el, "aria-checked")) return "checkbox";
  if (hasAttribute(el, "aria-pressed")) return "switch";
  if (isOpener(el)) return "combobox";
  return (tag === "fieldset" || role === "group") && radiosIn(el).length ? "radio" : null;
};

const choiceSubject = (el) => {
  const own = tagOf(el) === "label" ? labelControl(el) ?? el : el;
  return choiceKind(own) !== null ? own : actingElement(own);
};

// -- what there is to choose from

const radioGroup = (el) => {
  if (!RADIO_ROLES.has(roleOf(el))) return radiosIn(el);
  if (tagOf(el) === "input") {
    const name = attr(el, "name");
    if (!name) return [el];
    const form = formOwner(el);
    return [...queryAll(rootNode(el), "input")].filter((one) => inputType(one) === "radio" && attr(one, "name") === name && formOwner(one) === form);
  }
  const group = closest(el, (node) => roleOf(node) === "radiogroup" || roleOf(node) === "menu");
  return group === null ? [el] : queryDeep(group, "[role=radio],[role=menuitemradio]", 200);
};

const visibleLists = () => queryDeep(DOC, LIST_CSS, 50).filter(seenByEye);
const openedList = (opener) => {
  const owned = (attr(opener, "aria-owns") ?? "").trim().split(/\s+/).map((id) => (id ? idIn(rootNode(opener), id) : null));
  const target = attr(opener, "popovertarget");
  const named = [...controlledBy(opener), ...owned, target ? idIn(rootNode(opener), target) : null];
  const own = named.find((el) => el && el !== opener && seenByEye(el) && optionsWithin(el).length);
  if (own) return own;
  const lists = visibleLists().filter((el) => optionsWithin(el).length);
  const fresh = lists.filter((el) => !chooser.listsBefore.has(el));
  if (fresh.length === 1) return fresh[0];
  return fresh.length === 0 && expandedState(opener) && lists.length === 1 ? lists[0] : null;
};

// The options of a control; null while the list that holds them is closed.
const choicesIn = (el, kind) => {
  if (kind === "select") return selectChoices(el);
  if (kind === "radio") return radioGroup(el);
  if (kind === "listbox") return optionsWithin(el);
  if (kind === "combobox") {
    const list = openedList(el);
    return list === null ? null : optionsWithin(list);
  }
  return [];
};

const choiceLabels = (el) => {
  if (tagOf(el) === "option") return [...new Set([squash(optionText(el)), squash(attr(el, "label") ?? "")].filter(Boolean))];
  return tagOf(el) === "input" ? [nameOf(el, roleOf(el))] : optionLabels(el);
};
const choiceValue = (el) => {
  if (tagOf(el) === "option") return optionValueOf(el);
  return tagOf(el) === "input" ? inputValue(el) : attr(el, "data-value") ?? attr(el, "value");
};
const isOn = (el) => (tagOf(el) === "option" ? optionIsOn(el) : checkedState(el));
const tellsState = (el) => tagOf(el) === "option" || tagOf(el) === "input" || hasAttribute(el, "aria-selected") || hasAttribute(el, "aria-checked");
const shortLabel = (el) => cut(choiceLabels(el)[0] ?? "", LABEL_CHARS);

const calledThat = (options, text) => options.filter((el) => choiceLabels(el).some((label) => sameLabel(label, text)));
const allOneChoice = (options) => choiceValue(options[0]) !== null && options.every((el) => choiceValue(el) === choiceValue(options[0]));

// A label counts whole first; a part of it only when it can mean one option alone.
const findChoice = (options, wish) => {
  if (wish.index !== undefined) return options[wish.index] ?? null;
  if (wish.value !== undefined) return options.find((el) => choiceValue(el) === wish.value) ?? null;
  const exact = calledThat(options, wish.text);
  if (exact.length) return exact.length === 1 || allOneChoice(exact) ? exact[0] : null;
  const part = squash(wish.text).toLowerCase();
  const near = part === "" ? [] : options.filter((el) => choiceLabels(el).some((label) => label.toLowerCase().includes(part)));
  return near.length === 1 ? near[0] : null;
};

const takesSeveral = (el, kind) => (kind === "select" ? allowsSeveral(el) : kind === "listbox" && attr(el, "aria-multiselectable") === "true");

const shownChoice = (el) => (tagOf(el) === "input" ? squash(inputValue(el)) : shownTextOf(el) || squash(attr(el, "aria-valuetext") ?? ""));
const mixedState = (el) => attr(el, "aria-checked") === "mixed" || (tagOf(el) === "input" && matches(el, ":indeterminate"));

// The state as it is told: a label, several labels, or on and off.
const choiceNow = () => {
  const { el, kind } = chooser;
  if (kind === "checkbox" || kind === "switch" || kind === "option") return mixedState(el) ? "mixed" : checkedState(el);
  if (kind === "combobox") return cut(shownChoice(el), LABEL_CHARS);
  const on = (choicesIn(el, kind) ?? []).filter(isOn).map(shortLabel);
  return takesSeveral(el, kind) ? on.slice(0, 50) : on[0] ?? null;
};

// -- what would have to change

const choiceFacts = (el, places) => {
  const facts = commitFacts(el, places, composerHalo(), true);
  const owner = chooser.el;
  return { ...facts, menuName: facts.menuName || nameOf(owner, roleOf(owner)), submitter: facts.submitter || submitsByScript(owner) };
};

const wishesOf = ({ text, value, index, texts, values }) => {
  if (texts) return texts.map((one) => ({ text: one }));
  if (values) return values.map((one) => ({ value: one }));
  return [text !== undefined ? { text } : value !== undefined ? { value } : { index }];
};

const switchLook = (base, checked) => {
  const { el, kind } = chooser;
  if (kind === "select" || kind === "listbox" || kind === "combobox" || (kind === "radio" && !RADIO_ROLES.has(roleOf(el)))) return { ...base, wrong: "state" };
  const already = !mixedState(el) && checkedState(el) === checked;
  if (kind === "radio" && !checked && !already) return { ...base, wrong: "radio_off" };
  chooser.wanted = [el];
  return { ...base, already, changes: already ? [] : [choiceFacts(el, makePlaces())] };
};

const choiceLook = (wish) => {
  const { el, kind } = chooser;
  if (kind === null) return { kind };
  const options = choicesIn(el, kind);
  const base = { kind, count: options === null ? 0 : options.length, before: choiceNow(), already: false, changes: [] };
  chooser.checked = wish.checked ?? null;
  if (chooser.checked !== null) return switchLook(base, wish.checked);
  if (kind === "checkbox" || kind === "switch" || kind === "option") return { ...base, wrong: "pick" };
  const wishes = wishesOf(wish);
  const several = takesSeveral(el, kind);
  if (wishes.length !== 1 && !several) return { ...base, wrong: "one" };
  if (options === null) {
    const shown = wishes[0].text !== undefined && sameLabel(shownChoice(el), wishes[0].text);
    return shown ? { ...base, already: true } : { ...base, closed: true };
  }
  const found = wishes.map((one) => findChoice(options, one));
  const missing = found.indexOf(null);
  const shown = options.slice(0, SHOWN_CHOICES).map(shortLabel);
  if (missing >= 0) return { ...base, missing, shown, several: wishes[missing].text !== undefined && calledThat(options, wishes[missing].text).length > 1 };
  const wanted = new Set(found);
  // What a list marks as chosen may be no more than its highlight; only a control that shows its state is left alone.
  const stands = (option) => kind !== "combobox" && tellsState(option) && isOn(option);
  const changes = options.filter((option) => (several ? isOn(option) !== wanted.has(option) : wanted.has(option) && !stands(option)));
  const shut = changes.find((option) => isDisabled(option) !== null);
  if (shut) return { ...base, disabled: shortLabel(shut), shown };
  chooser.wanted = found;
  chooser.labels = found.flatMap(choiceLabels).filter(Boolean);
  const places = makePlaces();
  return { ...base, already: changes.length === 0, changes: changes.map((option) => choiceFacts(option, places)), native: kind === "select" };
};

questions.choiceLook = (wish) => {
  const target = shield.armed?.target;
  if (!target || !isConnected(target)) return { lost: true };
  const el = choiceSubject(target);
  Object.assign(chooser, { el, kind: choiceKind(el), wanted: [], checked: null, shownBefore: "", labels: [], listsBefore: new Set(), silent: null });
  if (chooser.kind === "combobox") {
    chooser.shownBefore = shownChoice(el);
    // A list that is open already is the control's own only if it says so.
    if (!expandedState(el)) chooser.listsBefore = new Set(visibleLists());
  }
  return choiceLook(wish);
};

// After the control was opened: until its list is there and holds what is wanted.
questions.choiceOpened = async ({ waitMs, ...wish }) => {
  const end = now() + waitMs;
  for (;;) {
    if (chooser.el === null || !isConnected(chooser.el)) return { lost: true };
    const look = choiceLook(wish);
    if (!look.closed && look.missing === undefined) return look;
    if (now() >= end) return look;
    await pause(50);
  }
};

// -- native selects: one trusted key or press makes the last step, so the page sees the change once, at its end

const menuLike = (el) => !allowsSeveral(el) && shownRows(el) <= 1;

questions.choiceFocus = () => {
  const { el } = chooser;
  if (shield.armed === null || el === null || !isConnected(el)) return { lost: true };
  // The control itself is the target from here on, even if its label was named.
  raise(el, menuLike(el) ? "type" : "click", shield.armed.spot);
  if (!menuLike(el)) return choicePoint(el);
  focusOn(el, { preventScroll: true });
  return { focused: deepActive() === el };
};

// The option whose state the press turns; everything else is set beforehand.
const lastTurn = () => {
  const wanted = new Set(chooser.wanted);
  if (!allowsSeveral(chooser.el)) return chooser.wanted[0];
  return selectChoices(chooser.el).find((option) => optionIsOn(option) !== wanted.has(option)) ?? null;
};

const choicePoint = (el) => {
  const option = lastTurn();
  scrollIntoView(option, { block: "nearest", inline: "nearest", behavior: "instant" });
  const [own, outer] = [boxOf(option), boxOf(el)];
  const x = (Math.max(own.left, outer.left) + Math.min(own.right, outer.right)) / 2;
  const y = (Math.max(own.top, outer.top) + Math.min(own.bottom, outer.bottom)) / 2;
  const hit = deepHit(x, y);
  if (hit === null || !hits(shield.armed.accepted, hit)) return { focused: false };
  shield.armed.spot = { x, y, hit };
  return { focused: true, x, y, several: allowsSeveral(el) };
};

questions.choiceSet = () => {
  const { el } = chooser;
  if (el === null || !isConnected(el)) return { lost: true };
  const options = selectChoices(el);
  chooser.silent = options.map(optionIsOn);
  if (menuLike(el)) {
    const at = options.indexOf(chooser.wanted[0]);
    // Down from the one before, or from none at all, leads to the next that can be chosen.
    setChosenIndex(el, at - 1);
    return { key: "ArrowDown" };
  }
  if (allowsSeveral(el)) {
    const wanted = new Set(chooser.wanted);
    const last = lastTurn();
    for (const option of options) if (option !== last && optionIsOn(option) !== wanted.has(option)) turnOption(option, wanted.has(option));
  }
  return {};
};

questions.choiceUndo = () => {
  const { el, silent } = chooser;
  if (el === null || silent === null) return false;
  const options = selectChoices(el);
  if (!allowsSeveral(el)) setChosenIndex(el, silent.indexOf(true));
  else options.forEach((option, index) => optionIsOn(option) !== silent[index] && turnOption(option, silent[index]));
  chooser.silent = null;
  return true;
};

// Where the key has another meaning (some systems open the list with it), the state is set and told to the page.
questions.choiceForce = () => {
  const { el } = chooser;
  const armed = shield.armed;
  if (el === null || !isConnected(el) || armed === null || armed.reached.includes("input") || !armed.reached.includes("keydown")) return false;
  if (sameChoice() === true) return false;
  setChosenIndex(el, selectChoices(el).indexOf(chooser.wanted[0]));
  fire(el, new Event("input", { bubbles: true, composed: true }));
  fire(el, new Event("change", { bubbles: true }));
  return true;
};

// -- reading back

const comboShows = () => {
  const { el, wanted, labels, shownBefore } = chooser;
  const [option] = wanted;
  const shown = isConnected(el) ? shownChoice(el) : "";
  if (shown !== "" && labels.some((label) => sameLabel(label, shown) || shown.toLowerCase().includes(label.toLowerCase()))) return true;
  if (option && isConnected(option) && tellsState(option)) return isOn(option);
  return shown !== "" && shown === shownBefore ? false : null;
};

// Whether the control stands as wanted; null when it does not say.
const sameChoice = () => {
  const { el, kind, wanted, checked } = chooser;
  if (kind === "combobox") return comboShows();
  if (!isConnected(el)) return null;
  if (checked !== null) return mixedState(el) ? false : checkedState(el) === checked;
  const options = choicesIn(el, kind) ?? [];
  if (options.length === 0 || !options.some(tellsState)) return null;
  const names = new Set(wanted.map(shortLabel));
  // A page that draws its options anew puts other nodes with the same labels there.
  const same = wanted.every(isConnected) ? (option) => wanted.includes(option) : (option) => names.has(shortLabel(option));
  return options.every((option) => isOn(option) === same(option));
};

questions.choiceState = async ({ waitMs }) => {
  const end = now() + waitMs;
  for (;;) {
    if (chooser.el === null) return { lost: true };
    const same = sameChoice();
    if (same === true || now() >= end) return { matches: same, after: isConnected(chooser.el) ? choiceNow() : null };
    await pause(30);
  }
};
