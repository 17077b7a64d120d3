// Files on their way into a file input.
const isFileInput = (el) => tagOf(el) === "input" && inputType(el) === "file";
const setInputValue = uncurry(Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set);
const uploading = { input: null, given: null, attached: false };
const inputFiles = (el) => [...(filesOf(el) ?? [])].slice(0, 50).map((file) => ({ name: file.name, bytes: file.size }));

// What the input holds at the moment the page is told; pages often empty it right after.
const noteFiles = (event) => {
  if (uploading.input !== null && eventPath(event)[0] === uploading.input) uploading.given ??= inputFiles(uploading.input);
};
const installUploads = () => {
  for (const type of ["input", "change"]) listen(WIN, type, noteFiles, { capture: true });
};
installUploads();

const fileInputFacts = (el) => ({
  isFile: true, accept: cut(attr(el, "accept") ?? "", 2000), several: hasAttribute(el, "multiple"), folder: hasAttribute(el, "webkitdirectory"),
});

const holdInput = (el) => {
  Object.assign(uploading, { input: el, given: null, attached: isConnected(el) });
  installUploads();
  // An input that stands in no document is made for its chooser alone; the window hears nothing of it.
  if (!uploading.attached) for (const type of ["input", "change"]) listen(el, type, noteFiles, { capture: true });
  return fileInputFacts(el);
};

// The file input that is meant; hidden ones are usual, so nothing is asked of their looks.
questions.uploadFind = ({ selector = null, node = null, nth = null, expect = null }) => {
  const picked = pick({ selector, node, nth });
  if (!picked.el || picked.several > 1) return { isFile: false };
  const places = makePlaces();
  if (expect && !sameIdentity(expect, identityOf(picked.el, places))) return { isFile: false };
  const el = tagOf(picked.el) === "label" ? labelControl(picked.el) ?? picked.el : picked.el;
  if (!isFileInput(el)) return { isFile: false };
  const [acting] = commitRoads(el, null, places);
  raise(el, "type", { x: 0, y: 0, hit: el });
  startTracking(el);
  return {
    ...holdInput(el), disabled: isDisabled(el) !== null, element: factsOf(el, places), acting, alsoActing: [], standing,
    secret: false, url: pageAddress(), recentPaths: recentPaths(),
  };
};

// The input behind a button that asked for files.
questions.uploadOpened = ({ el }) => (isFileInput(el) ? holdInput(el) : { isFile: false });

// Answers with the element itself, for the browser to put the files into.
questions.uploadInput = () => {
  // The same names again would pass for no change: nobody would be told, and files that changed since could not be read.
  if (uploading.input !== null && inputFiles(uploading.input).length) setInputValue(uploading.input, "");
  return uploading.input;
};

questions.uploadState = () => {
  const { input, given, attached } = uploading;
  if (input === null) return { lost: true };
  return { lost: false, given, holds: isConnected(input) || !attached ? inputFiles(input) : null };
};
