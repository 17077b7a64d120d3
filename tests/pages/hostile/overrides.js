// Everything a page can replace in its own world.
const liar = () => [];
for (const proto of [Document.prototype, Element.prototype, DocumentFragment.prototype]) {
  proto.querySelectorAll = liar;
  proto.querySelector = () => null;
}
Element.prototype.getBoundingClientRect = () => ({ left: 0, top: 0, right: 0, bottom: 0, width: 0, height: 0 });
Element.prototype.getAttribute = () => "forged";
Element.prototype.checkVisibility = () => false;
for (const name of ["push", "map", "filter", "slice", "forEach", "some", "every", "join"]) Array.prototype[name] = () => { throw new Error("mine"); };
JSON.stringify = () => '"forged"';
Object.prototype.toJSON = () => "forged";
window.MutationObserver = class { observe() {} disconnect() {} takeRecords() { return []; } };
window.getComputedStyle = () => ({});
window.setTimeout = () => 0;
window.requestAnimationFrame = () => 0;
globalThis.__nova = { ask: () => "forged" };
