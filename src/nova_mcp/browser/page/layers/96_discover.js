// Finding what a guarded action needs, without being told where it is. Every candidate is named; the host decides.
const seenAs = (list) => {
  const places = makePlaces();
  return list.slice(0, 20).map((el) => factsOf(el, places));
};

// Null when nothing was named; undefined when what was named is gone.
const givenNode = (node) => {
  if (node === null || node === undefined) return null;
  const el = nodeOf(node);
  return el !== null && isConnected(el) ? el : undefined;
};

const visibleSubmits = (form) => {
  const found = new Set();
  const list = formElements(form);
  for (let i = 0; i < Math.min(list.length, 2000); i += 1) if (isSubmitter(list[i], form) && visibleControl(list[i])) found.add(list[i]);
  walk(form, (el) => {
    if (isSubmitter(el, form) && formOwner(el) === form && visibleControl(el)) found.add(el);
    return undefined;
  });
  return [...found].sort((left, right) => (comparePosition(left, right) & 4 ? -1 : 1));
};

questions.findSubmit = ({ node = null }) => {
  const given = givenNode(node);
  if (given === undefined) return { gone: true };
  if (given !== null) {
    const form = tagOf(given) === "form" ? given : formOwner(given);
    const control = actingElement(given);
    if (tagOf(given) !== "form" && (PRESSABLE.has(roleOf(control)) || isSubmitter(control, form))) return { given: seenAs([control])[0], forms: [] };
    const inner = form ?? queryDeep(given, "form", 2);
    const forms = Array.isArray(inner) ? inner : [inner];
    return { given: null, forms: forms.map((el) => ({ form: formFacts(el), submits: seenAs(visibleSubmits(el)) })) };
  }
  const modal = openModal(DOC);
  const forms = queryDeep(DOC, "form", 200).filter((el) => modal === null || composedContains(modal, el));
  const usable = forms.map((el) => ({ form: formFacts(el), submits: seenAs(visibleSubmits(el)) })).filter(({ submits }) => submits.length > 0);
  return { given: null, forms: usable };
};

const loginParts = (form) => {
  // A form may be sent by one of several buttons; the one that says so is meant.
  const saying = form.submits.filter(signsIn);
  const onward = form.submits.filter(proceeds);
  const submits = saying.length ? saying : onward.length ? onward : form.submits;
  return { kind: form.kind, username: form.username && seenAs([form.username])[0], password: form.password && seenAs([form.password])[0], submits: seenAs(submits) };
};

questions.findLogin = ({ node = null }) => {
  const given = givenNode(node);
  if (given === undefined) return { gone: true };
  const modal = openModal(DOC);
  const all = loginForms(DOC).filter((form) => form.kind !== "federated" && form.score >= 0.5);
  if (given !== null) {
    const control = actingElement(given);
    const touches = (form) => form.submits.includes(control) || (form.box !== null && (composedContains(form.box, given) || composedContains(given, form.box))) || form.username === given || form.password === given;
    return { forms: all.filter(touches).map(loginParts), control: isButtonish(control) ? seenAs([control])[0] : null };
  }
  const reachable = modal === null ? all : all.filter((form) => composedContains(modal, form.password ?? form.username));
  return { forms: reachable.filter((form) => !form.unclear).map(loginParts), control: null };
};

questions.findComposer = ({ node = null }) => {
  const given = givenNode(node);
  if (given === undefined) return { gone: true };
  const boxes = given === null ? composersIn(DOC) : isTextBox(given) ? [given] : textBoxes(given);
  writing.box = boxes.length === 1 ? new WeakRef(boxes[0]) : null;
  return { boxes: seenAs(boxes), text: boxes.length === 1 && hasText(boxes[0]) };
};

questions.findSend = ({ node }) => {
  const box = givenNode(node);
  if (!box) return { gone: true };
  // In a conversation a box without any control beside it can only be sent by Enter, unless an answer is being written.
  const byEnter = enterSends(box) || (saysMessage(box) && turnsIn(DOC) !== null && !stopControl(DOC));
  return { sends: seenAs(bestSends(box)), byEnter };
};

const pickerFacts = (el, kind) => ({ ...seenAs([el])[0], native: tagOf(el) === "select", label: cut(pickerLabel(el, kind), 200), open: listOpen(el, kind) ?? false });

questions.findPicker = ({ node = null, kind }) => {
  const given = givenNode(node);
  if (given === undefined) return { gone: true };
  const inner = given === null || isOpener(given) ? null : pickersIn(given, kind);
  const pickers = given === null ? pickersIn(DOC, kind) : inner?.length ? inner : [actingElement(given)];
  return { pickers: pickers.slice(0, 20).map((el) => pickerFacts(el, kind)) };
};

const optionFacts = (el) => ({ ...seenAs([el])[0], labels: optionLabels(el).map((text) => cut(text, 200)), off: isDisabled(el) !== null });
const byLabel = (options, label) => {
  for (const same of [(text) => squash(text) === squash(label), (text) => sameLabel(text, label)]) {
    const found = options.filter((el) => optionLabels(el).some(same));
    if (found.length) return found;
  }
  return [];
};

questions.findOption = ({ node = null, kind = "model", label }) => {
  const picker = givenNode(node);
  if (picker === undefined) return { gone: true };
  if (picker !== null && tagOf(picker) === "select") {
    const choices = selectChoices(picker);
    const found = byLabel(choices, label);
    const places = found.map((el) => ({ index: choices.indexOf(el), label: squash(optionText(el)), off: isDisabled(el) !== null }));
    return { native: true, found: places, labels: choices.slice(0, 20).map((el) => cut(squash(optionText(el)), 80)), total: choices.length };
  }
  const own = picker === null ? null : listOf(picker, kind);
  const lists = own !== null ? [own] : queryDeep(DOC, `${LIST_CSS},[popover]`, 50).filter((el) => seenByEye(el) && (!hasAttribute(el, "popover") || popoverOpen(el)));
  const options = [...new Set(lists.flatMap(optionsWithin))];
  const found = byLabel(options, label);
  return { native: false, found: found.slice(0, 20).map(optionFacts), labels: options.slice(0, 20).map((el) => cut(optionLabels(el)[0] ?? "", 80)), total: options.length };
};
