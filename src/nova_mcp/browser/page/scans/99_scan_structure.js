// How the page is built, and none of its text.
registeredScans.nova_structured_dom_v1 = () => ({
  chars: 0, length: 0, blocks: [], total: 0, whole: true, frames: 0, hidden: null, channels: [],
});
