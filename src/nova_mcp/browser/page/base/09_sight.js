// What a person can see of an element.
const rendered = (el) => checkVisible(el, { visibilityProperty: true, contentVisibilityAuto: false });

const opaque = (el) => checkVisible(el, { opacityProperty: true });

// Ink so faint that nobody reads it counts as none.
const ALPHA = /^rgba\(.*,\s*([\d.]+)\)$|\/\s*([\d.]+)\)$/;
const isTransparent = (color) => {
  if (color.startsWith("rgb(") && !color.includes("/")) return false;
  if (color === "transparent") return true;
  const found = ALPHA.exec(color);
  return found !== null && Number(found[1] ?? found[2]) < 0.1;
};

// Letters take their colour from the ground behind them where that is cut out along their shapes.
const drawnThrough = (el) => closest(el, (node) => styleOf(node).backgroundClip.includes("text")) !== null;
const inkOf = (style) => style.webkitTextFillColor || style.color;
const withoutInk = (el, style) =>
  isTransparent(inkOf(style)) && !(parseFloat(style.webkitTextStrokeWidth) > 0) && !drawnThrough(el);

// Type too small to be read, or so narrow that its letters lie on one another.
const zoomDescriptor = Object.getOwnPropertyDescriptor(Element.prototype, "currentCSSZoom");
const zoomOf = zoomDescriptor === undefined ? () => 1 : uncurry(zoomDescriptor.get);
const illegible = (el, style) => {
  const size = parseFloat(style.fontSize);
  return size * zoomOf(el) < 3 || parseFloat(style.letterSpacing) < -0.75 * size;
};

const NO_CLIP = new Set(["", "auto", "none"]);
const clippedAway = (style) =>
  (!NO_CLIP.has(style.clip) && /^rect\((0|0px|1px)[, ]+(0|0px|1px)[, ]+(0|0px|1px)[, ]+(0|0px|1px)\)$/.test(style.clip)) ||
  /^inset\((50|100)%\)$/.test(style.clipPath) || /^(?:circle|ellipse)\((?:0(?:\.\d+)?(?:px|%)?|[12](?:\.\d+)?px)[ )]/.test(style.clipPath);

// How much an inset leaves of a box: hardly anything counts as nothing.
const INSET = /^inset\(([^()]*?)(?: round [^()]*)?\)$/;
const insetAway = (style, box) => {
  const found = INSET.exec(style.clipPath);
  if (found === null) return false;
  const [top, right = top, bottom = top, left = right] = tokensOf(found[1]);
  const pixels = (length, whole) => (length.endsWith("%") ? (parseFloat(length) * whole) / 100 : parseFloat(length));
  return box.width - pixels(left, box.width) - pixels(right, box.width) < 3 || box.height - pixels(top, box.height) - pixels(bottom, box.height) < 3;
};

// Window measures are dear to read thousands of times; each question takes them once.
const view = { x: 0, y: 0, width: 0, height: 0 };
const measure = () => {
  [view.x, view.y, view.width, view.height] = [WIN.scrollX, WIN.scrollY, WIN.innerWidth, WIN.innerHeight];
};
asked.push(measure);

const offPage = (box) => box.right + view.x <= 0 || box.bottom + view.y <= 0 || box.left + view.x > 20000;

// Text nobody sees although it is laid out: zero or unreadably small type, transparent ink, clipped or moved away.
const inkless = (el) => {
  const style = styleOf(el);
  return illegible(el, style) || withoutInk(el, style) || parseFloat(style.textIndent) < -500;
};

const CUSTOM_DRAWN = new Set(["checkbox", "radio", "file", "range"]);
// Most controls are rendered and opaque; one question settles both.
const PLAINLY_SHOWN = Object.freeze({ visibilityProperty: true, opacityProperty: true });
const visibleIn = (el, box) => {
  const plain = checkVisible(el, PLAINLY_SHOWN);
  if (!plain && !rendered(el)) return false;
  if (box.width < 1 || box.height < 1) return tagOf(el) === "a" && boxesOf(el).length > 0 && hasVisibleChild(el);
  if (!plain && !(tagOf(el) === "input" && CUSTOM_DRAWN.has(inputType(el)))) return false;
  if (offPage(box)) return false;
  return !((box.width <= 1 || box.height <= 1) && clippedAway(styleOf(el)));
};
const visibleControl = (el) => visibleIn(el, boxOf(el));

const hasVisibleChild = (el) => {
  for (const child of composedChildren(el)) {
    if (!isElement(child) || !rendered(child)) continue;
    const box = boxOf(child);
    if (box.width >= 1 && box.height >= 1) return true;
  }
  return false;
};
