// Every channel block by block with its language, and how much text the page keeps out of sight.
registeredScans.nova_i18n_spellcheck_v1 = (options) => {
  const taken = takeText(options);
  const blocks = [...taken.sheet.blocks, ...taken.labels];
  return {
    chars: takenChars(taken), length: taken.sheet.length, blocks: handedOver(blocks, options.maxChars), total: blocks.length,
    whole: taken.budget.whole, frames: taken.seenFrames, hidden: taken.hidden, channels: ["text", "aria", "input", "alt"],
  };
};
