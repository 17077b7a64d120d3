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

const NO_CLIP = new Set(["", "auto", "none"]);
const clippedAway = (style) =>
  (!NO_CLIP.has(style.clip) && /^rect\((0|0px|1px)[, ]+(0|0px|1px)[, ]+(0|0px|1px)[, ]+(0|0px|1px)\)$/.test(style.clip)) ||
  /^inset\((50|100)%\)$/.test(style.clipPath) || /^circle\(0/.test(style.clipPath);

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
  return parseFloat(style.fontSize) < 3 || isTransparent(style.color) || parseFloat(style.textIndent) < -500;
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
