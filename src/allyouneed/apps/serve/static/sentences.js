// The text as sentences: what is translated at once, and sent again only if it changed.

const SEGMENTER = Intl.Segmenter && new Intl.Segmenter("en", { granularity: "sentence" });
// A full stop after these ends no sentence: "Dr.", "J.", "z.B.", "etc.". Without it a sentence is sent with the next.
const ABBREVIATION = /(?:^|[\s(])(?:\p{L}(?:\.\p{L})*|Dr|Hr|Jr|Mme|Mrs?|Ms|No|Nr|Prof|Sig|Sra?|St|approx|bzw|ca|etc|resp|usw|vs)\.\s*$/u;
const UNSPACED = ["ja", "th", "zh"]; // no blank between sentences

let last = { text: "", sentences: [] };

function segments(line) {
  if (!SEGMENTER) return [line];
  const merged = [];
  for (const { segment } of SEGMENTER.segment(line)) {
    if (merged.length && ABBREVIATION.test(merged.at(-1))) merged[merged.length - 1] += segment;
    else merged.push(segment);
  }
  return merged;
}

// [{ source, line, start, gap }]: the number of its line, its place in the text, and the blanks before it in its line.
export function splitSentences(text) {
  if (last.text === text) return last.sentences;
  const sentences = [];
  let lineStart = 0;
  text.split("\n").forEach((content, line) => {
    let place = 0, end = 0;
    for (const segment of segments(content)) {
      const source = segment.trim();
      if (source) {
        const start = place + segment.indexOf(source);
        sentences.push({ source, line, start: lineStart + start, gap: content.slice(end, start) });
        end = start + source.length;
      }
      place += segment.length;
    }
    lineStart += content.length + 1;
  });
  last = { text, sentences };
  return sentences;
}

// What stands before a translated sentence of a line; `isFirst` of its line.
export const gapBefore = (sentence, isFirst, target) =>
  isFirst ? sentence.gap : UNSPACED.includes(target.split("-")[0]) ? "" : sentence.gap || " ";

// The sentences of each of `count` lines.
export function groupByLine(sentences, count) {
  const lines = Array.from({ length: count }, () => []);
  sentences.forEach((sentence) => lines[sentence.line].push(sentence));
  return lines;
}
