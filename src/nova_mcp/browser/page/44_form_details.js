// What a form needs to be filled in that no list of elements tells: options, what may be typed, what is secret.
const MOST_OPTIONS = 21;
const offeredOptions = getter(HTMLSelectElement.prototype, "options");
const offeredBy = (el) => {
  if (tagOf(el) === "select") return [...offeredOptions(el)].slice(0, MOST_OPTIONS).map((option) => cut(squash(optionText(option)), 80));
  if (!hasAttribute(el, "aria-controls") && !hasAttribute(el, "aria-owns") && roleOf(el) !== "listbox") return [];
  const root = rootNode(el);
  const ids = `${attr(el, "aria-controls") ?? ""} ${attr(el, "aria-owns") ?? ""}`.trim().split(/\s+/).slice(0, 5);
  const lists = [el, ...ids.map((id) => (id === "" ? null : idIn(root, id)))].filter((list) => list !== null);
  const options = lists.flatMap((list) => [...queryAll(list, "[role=option]")]).slice(0, MOST_OPTIONS);
  return options.filter(rendered).map((option) => cut(nameOf(option, "option"), 80));
};

questions.controlDetails = ({ nodes: wanted }) =>
  wanted.map((number) => {
    const el = nodeOf(number);
    if (el === null || !isConnected(el)) return null;
    return {
      autocomplete: cut((attr(el, "autocomplete") ?? "").trim().toLowerCase(), 60), options: offeredBy(el),
      secret: isSecret(el), typable: isTypable(el) || isSettable(el),
    };
  });
