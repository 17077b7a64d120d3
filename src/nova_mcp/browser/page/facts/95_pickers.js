// Controls that choose a model or a workspace, and the lists they open.
const PICKER_WORDS = { model: "model_picker", workspace: "workspace_picker" };
const OPTION_ROLES = new Set(["option", "menuitem", "menuitemradio", "menuitemcheckbox", "treeitem", "radio"]);
const LIST_CSS = "[role=listbox],[role=menu],[role=radiogroup],[role=tree]";

const isOpener = (el) => {
  const tag = tagOf(el);
  if (tag === "select") return !hasAttribute(el, "multiple");
  const role = roleOf(el);
  if (OPTION_ROLES.has(role) || role === "link") return false;
  const popup = (attr(el, "aria-haspopup") ?? "").toLowerCase();
  return role === "combobox" || tag === "summary" || hasAttribute(el, "aria-expanded") || (popup !== "" && popup !== "false") || hasAttribute(el, "popovertarget");
};

const saysPicker = (el, kind) => {
  const words = PICKER_WORDS[kind];
  const name = nameOf(el, roleOf(el));
  if (foldWords(name).length <= 12 && mentions(words, name)) return true;
  if (marksOf(el).some((mark) => inIdentifier(words, mark))) return true;
  return controlledBy(el).some((list) => matches(list, LIST_CSS) && mentions(words, nameOf(list, roleOf(list))));
};

const OPENER_CSS = "select,summary,[role=combobox],[aria-haspopup],[aria-expanded],[popovertarget]";
const pickersIn = (scope, kind) => once(`picker ${kind}`, scope, () =>
  queryDeep(scope, OPENER_CSS, 2000).filter((el) => isOpener(el) && saysPicker(el, kind) && visibleControl(el)));

const pickerFor = (scope, kind) => {
  const found = pickersIn(scope, kind);
  return found.length === 1 ? found[0] : null;
};

// Triangles and arrows that say "opens a list".
const DROP_MARK = /[\s\u2190-\u21ff\u2300-\u23ff\u25a0-\u25ff\u203a\u00bb]+$/u;

// What the control shows as chosen, without the word for what is being chosen.
const pickerLabel = (el, kind) => {
  const tag = tagOf(el);
  if (tag === "select" || tag === "input") return squash(rawValue(el));
  const shown = shownTextOf(el).replace(DROP_MARK, "");
  if (shown === "") return squash(attr(el, "aria-valuetext") ?? "");
  const led = /^([^:]{1,40}):\s*(.+)$/u.exec(shown);
  if (led !== null && mentions(PICKER_WORDS[kind], led[1])) return led[2];
  const first = firstPart(el);
  const rest = first === null ? "" : squash(shown.slice(first.length));
  return rest !== "" && shown.startsWith(first) && isPhrase(PICKER_WORDS[kind], first) ? rest : shown;
};

// The first of several pieces an element is made of; a name that begins with the same word is one piece.
const firstPart = (el) => {
  const parts = [];
  for (const child of composedChildren(el)) {
    const text = isText(child) ? squash(dataOf(child)) : isElement(child) ? shownTextOf(child) : "";
    if (text !== "") parts.push(text);
  }
  return parts.length > 1 ? parts[0] : null;
};

const popoverOpen = (el) => hasAttribute(el, "popover") && matches(el, ":popover-open");
const isOpenSelect = (el) => {
  try {
    return matches(el, ":open");
  } catch {
    return undefined;
  }
};

// The list that belongs to a picker, if it can be seen.
const listOf = (picker, kind) => {
  const own = controlledBy(picker).filter((el) => seenByEye(el) && (tagOf(el) !== "details" || detailsOpen(el)));
  if (own.length) return own[0];
  const target = attr(picker, "popovertarget");
  const popover = target ? idIn(rootNode(picker), target) : null;
  if (popover !== null && popoverOpen(popover)) return popover;
  const lists = queryDeep(DOC, LIST_CSS, 50).filter(seenByEye);
  const named = lists.filter((el) => mentions(PICKER_WORDS[kind], nameOf(el, roleOf(el))));
  if (named.length === 1) return named[0];
  return expandedState(picker) && lists.length === 1 ? lists[0] : null;
};

const isOption = (el) => OPTION_ROLES.has(roleOf(el)) && tagOf(el) !== "option";
const optionsWithin = (list) => {
  const found = [];
  const plainer = [];
  walk(list, (el) => {
    if (IGNORED.has(tagOf(el))) return "skip";
    if (el !== list && isOption(el) && visibleControl(el)) found.push(el);
    else if (el !== list && maybeControl(el) && PRESSABLE.has(roleOf(el)) && visibleControl(el)) plainer.push(el);
    return undefined;
  }, CHAT_LIMITS);
  return found.length ? found : plainer;
};

// An option's label is its first line; what follows describes it.
const optionLabels = (el) => {
  if (tagOf(el) === "option") return [squash(optionText(el))];
  const shown = shownTextOf(el);
  const first = squash((innerTextOf(el) ?? "").trim().split("\n")[0]);
  return [...new Set([first, shown, nameOf(el, roleOf(el))].filter(Boolean))];
};

const choicesOf = getter(HTMLSelectElement.prototype, "options");
const selectChoices = (el) => [...choicesOf(el)].slice(0, 2000);

const sameLabel = (one, other) => squash(one).toLowerCase() === squash(other).toLowerCase();

const listOpen = (picker, kind) => {
  if (tagOf(picker) === "select") return isOpenSelect(picker);
  return listOf(picker, kind) !== null || expandedState(picker);
};

const selectedFact = (kind) => (scope) => {
  const picker = pickerFor(scope, kind);
  return picker === null ? undefined : cut(pickerLabel(picker, kind), 200);
};

facts["model.selected"] = selectedFact("model");
facts["model.dropdown.visible"] = (scope) => {
  const picker = pickerFor(scope, "model");
  return picker === null ? undefined : listOpen(picker, "model");
};
facts["sandbox.selected"] = selectedFact("workspace");
facts["sandbox.selected.changed"] = (scope, watch) => {
  const picker = pickerFor(scope, "workspace");
  if (picker === null) return undefined;
  const label = pickerLabel(picker, "workspace");
  return label !== armed(watch, "sandbox.selected", () => label);
};
// A list that is closed may hold anything.
facts["sandbox.target.exists"] = (scope, watch) => {
  const picker = pickerFor(scope, "workspace");
  if (picker === null || !watch.label) return undefined;
  if (sameLabel(pickerLabel(picker, "workspace"), watch.label)) return true;
  const list = tagOf(picker) === "select" ? null : listOf(picker, "workspace");
  const options = tagOf(picker) === "select" ? selectChoices(picker) : list === null ? null : optionsWithin(list);
  return options === null ? undefined : options.some((el) => optionLabels(el).some((label) => sameLabel(label, watch.label)));
};
