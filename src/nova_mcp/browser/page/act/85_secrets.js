// Fields that a secret goes into. Once marked, a field reads as "•••" for as long as its document lives, even if the
// page turns it into an open one or puts another text into it.
questions.markSecret = ({ text = null }) => {
  const el = shield.armed?.target;
  if (!el || !isConnected(el)) return { lost: true };
  secretFields.add(el);
  // Only whether it is the same leaves the page.
  return { lost: false, matches: text !== null && readBack(el, text).matches };
};
