// Layers that lie over the page.
for (const name of ["overlay.blocking", "overlay.primary.visible"]) trueBySight.add(name);

const PROBE_POINTS = [[0.5, 0.5], [0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]];
const LIFTED = 10;
// Content is often placed absolutely; only what was lifted above the rest on purpose is a layer.
const isLifted = (el) => {
  const style = styleOf(el);
  if (style.position === "fixed") return true;
  return (style.position === "absolute" || style.position === "sticky") && Number(style.zIndex) >= LIFTED;
};

const CONTROL_CSS = "a[href],button,input,select,textarea";
const MAIN_CSS = "main,[role=main]";
// An application may sit in a fixed frame as a whole; that is the page, not something over it.
const holdsPage = (el) => {
  if (matches(el, MAIN_CSS) || elementAll(el, MAIN_CSS).length > 0) return true;
  const all = documentAll(DOC, CONTROL_CSS).length;
  return all > 0 && elementAll(el, CONTROL_CSS).length * 2 > all && elementAll(el, "[role=dialog],[role=alertdialog],dialog").length === 0 && !DIALOG_ROLES.has(roleOf(el));
};

const probes = () => {
  const seen = [];
  for (const [fx, fy] of PROBE_POINTS) {
    const hit = deepHit(WIN.innerWidth * fx, WIN.innerHeight * fy);
    const layers = [];
    for (let node = hit; node !== null; node = composedParent(node)) {
      const tag = tagOf(node);
      if (tag !== "body" && tag !== "html" && isLifted(node)) layers.push(node);
    }
    seen.push(layers);
  }
  return seen;
};

// The outermost layer that owns three of the five points and is not the page itself.
const coveringLayer = (seen) => {
  const owned = new Map();
  for (const layers of seen) for (const layer of layers) owned.set(layer, (owned.get(layer) ?? 0) + 1);
  let found = null;
  for (const [layer, count] of owned)
    if (count >= 3 && !holdsPage(layer) && (found === null || composedContains(layer, found))) found = layer;
  return found;
};

const modalLayers = () => {
  const found = queryDeep(DOC, "dialog:modal", 10).filter(seenByEye);
  const declared = queryDeep(DOC, "[aria-modal=true]", 20).filter((el) => DIALOG_ROLES.has(roleOf(el)) && seenByEye(el));
  return { modal: found, declared };
};

const within = (scope, layer) => scope === DOC || composedContains(scope, layer) || composedContains(layer, scope);

const layerStamp = (el) => cut(nameOf(el, roleOf(el)) || shownTextOf(el), 200);

facts["overlay.primary.visible"] = (scope) => {
  if (WIN.innerWidth < 1 || WIN.innerHeight < 1) return undefined;
  const { modal, declared } = modalLayers();
  const covering = coveringLayer(probes());
  const layer = [...modal, ...declared, covering].find((el) => el !== null && within(scope, el) && opaque(el));
  return layer === undefined ? { v: false, s: "" } : { v: true, s: layerStamp(layer) };
};

facts["overlay.blocking"] = (scope) => {
  if (WIN.innerWidth < 1 || WIN.innerHeight < 1) return undefined;
  const { modal, declared } = modalLayers();
  const seen = probes();
  const covering = coveringLayer(seen);
  const layer = [...modal, covering].find((el) => el !== null && within(scope, el));
  if (layer !== undefined) return { v: true, s: layerStamp(layer) };
  const claimed = declared.find((el) => within(scope, el));
  if (claimed === undefined) return { v: false, s: "" };
  // It says that it blocks; whether it does is for the points around it to show.
  return seen.filter((layers) => layers.length > 0).length >= 3 ? { v: true, s: layerStamp(claimed) } : undefined;
};
