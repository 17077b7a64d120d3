// What a form needs to be filled in that no list of elements tells: options, what may be typed, what is secret.
const MOST_OPTIONS = 20;
const offeredOptions = getter(HTMLSelectElement.prototype, "options");
const offeredBy = (el) => {
  const offered = (list, say) => ({ options: list.slice(0, MOST_OPTIONS).map((option) => cut(say(option), 80)), optionCount: list.length });
  if (tagOf(el) === "select") return offered([...offeredOptions(el)], (option) => squash(optionText(option)));
  if (!hasAttribute(el, "aria-controls") && !hasAttribute(el, "aria-owns") && roleOf(el) !== "listbox") return offered([]);
  const root = rootNode(el);
  const ids = `${attr(el, "aria-controls") ?? ""} ${attr(el, "aria-owns") ?? ""}`.trim().split(/\s+/).slice(0, 5);
  const lists = [el, ...ids.map((id) => (id === "" ? null : idIn(root, id)))].filter((list) => list !== null);
  return offered(lists.flatMap((list) => [...queryAll(list, "[role=option]")]).filter(rendered), (option) => nameOf(option, "option"));
};

questions.controlDetails = ({ nodes: wanted }) =>
  wanted.map((number) => {
    const el = nodeOf(number);
    if (el === null || !isConnected(el)) return null;
    return {
      autocomplete: cut((attr(el, "autocomplete") ?? "").trim().toLowerCase(), 60), ...offeredBy(el),
      secret: isSecret(el), typable: isTypable(el) || isSettable(el),
    };
  });
