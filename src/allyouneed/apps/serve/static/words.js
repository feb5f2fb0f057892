// The words of a line, and which words belong together.

// Return the words of a line with their positions: [{ text, start, end }]. Words are split at blanks, as in alignments.
export const words = (line) => [...line.matchAll(/\S+/g)].map((match) => ({ text: match[0], start: match.index, end: match.index + match[0].length }));

// Find, for each word of `listed`, its index among the words of `line`. The server may have normalized the typed text.
function indices(listed, line) {
  const here = words(line);
  if (here.length === listed.length) return listed.map((_, index) => index);
  let from = 0;
  return listed.map((word) => {
    const index = here.findIndex((one, at) => at >= from && one.text === word);
    if (index >= 0) from = index + 1;
    return index;
  });
}

// Return the links [source, target] of a line, in terms of the words on the page.
export function links(source, translation) {
  const alignment = translation?.alignment;
  if (!alignment) return [];
  const read = indices(alignment.source, source), written = indices(alignment.target, translation.text);
  return alignment.links.map(([i, j]) => [read[i], written[j]]).filter(([i, j]) => i >= 0 && j >= 0);
}
