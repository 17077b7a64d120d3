// The text of the whole page as a person sees it, then what it says to those who don't: labels, fields, pictures.
registeredScans.nova_full_page_text_v1 = (options) => {
  const taken = takeText(options);
  const blocks = [...taken.sheet.blocks, ...taken.labels];
  return {
    chars: takenChars(taken), length: taken.sheet.length, blocks: handedOver(blocks, options.maxChars), total: blocks.length,
    whole: taken.budget.whole, frames: taken.seenFrames, hidden: null, channels: ["text", "aria", "input", "alt"],
  };
};
