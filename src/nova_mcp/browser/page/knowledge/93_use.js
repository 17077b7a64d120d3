// What a stored playbook asks while it is used: how the element looks that is about to be pressed, and what lies over
// the page.
const CONSENT_NEAR = { levels: 4, chars: 1500 };
// A request for consent in the flow of the page is no layer, and pressing its button decides all the same.
const nearConsent = (el) => {
  let node = composedParent(el);
  for (let level = 0; node !== null && level < CONSENT_NEAR.levels; level += 1, node = composedParent(node)) {
    if (matches(node, MAIN_CSS) || node === DOC.body || textContentOf(node).length > CONSENT_NEAR.chars) return false;
    if (among("consent_text", longWords(shownTextOf(node, textBudget(400))))) return true;
  }
  return false;
};

questions.knowledgeArmed = () => {
  const el = shield.armed?.target ?? null;
  if (el === null || !isConnected(el)) return { lost: true };
  const layer = layerAround(el);
  return {
    print: printOf(el, printTools()).print, control: controlTold(el),
    layer: layer === null ? null : { kind: layer.kind, label: layer.label }, nearConsent: nearConsent(el),
  };
};

const COVER_GRID = 7;
// A bar of the site's own that stays in sight covers nothing that was meant to be reached.
const hidesPage = (node, known) => {
  if (!known.has(node)) known.set(node, standsOut(node) && !holdsPage(node) && !navigates(node));
  return known.get(node);
};
questions.knowledgeCovered = () => {
  if (view.width < 1 || view.height < 1) return null;
  if ([...allByTag(DOC, "dialog")].slice(0, 50).some((el) => isModalNow(el) && seenByEye(el))) return 1;
  const known = new Map();
  let covered = 0;
  for (let row = 0; row < COVER_GRID; row += 1)
    for (let column = 0; column < COVER_GRID; column += 1) {
      let node = deepHit((view.width * (column + 0.5)) / COVER_GRID, (view.height * (row + 0.5)) / COVER_GRID);
      while (node !== null && (["body", "html"].includes(tagOf(node)) || !hidesPage(node, known))) node = composedParent(node);
      if (node !== null) covered += 1;
    }
  return covered / (COVER_GRID * COVER_GRID);
};
