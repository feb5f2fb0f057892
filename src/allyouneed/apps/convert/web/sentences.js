// A text → its sentences, and what stands before, between and after their translations: as `SplitTexts` in Python, with
// the sentence ends of the browser, but for the abbreviations that the exporter found in the vocabulary.

const UNSPACED = ["bo", "dz", "ja", "km", "lo", "lzh", "my", "th", "wuu", "yue", "zh"]; // no blank between sentences

// `languages` are tags of source and target; "" is not known. With `split` off the text is one sentence.
function splitText(text, { languages: [source, target], abbreviations, split }) {
  const known = new Set(abbreviations);
  const ends = (line) => {
    const merged = [];
    for (const { segment } of new Intl.Segmenter(source || "en", { granularity: "sentence" }).segment(line)) {
      const last = merged.at(-1)?.match(/(\p{L}[\p{L}.]*)\.\s+$/u)?.[1];
      const goesOn = last && (known.has(last) || (/^\p{Lu}$/u.test(last) && last !== "I"));
      if (goesOn) merged[merged.length - 1] += segment;
      else merged.push(segment);
    }
    return merged;
  };
  const parts = split ? text.split(/(?<=[\r\n])/).flatMap(ends) : [text];
  const sentences = [], gaps = [""];
  for (const part of parts) {
    const sentence = part.trim();
    if (sentence) {
      const start = part.indexOf(sentence);
      gaps[gaps.length - 1] += part.slice(0, start);
      sentences.push(sentence);
      gaps.push(part.slice(start + sentence.length));
    } else gaps[gaps.length - 1] += part;
  }
  const between = (gap) => {
    if (!target || gap.replace(/[ \u3000]/g, "")) return gap;
    return UNSPACED.includes(target.toLowerCase().split(/[-_]/)[0]) ? "" : gap.replaceAll("\u3000", " ") || " ";
  };
  return { sentences, gaps: gaps.map((gap, i) => (i && i < sentences.length ? between(gap) : gap)) };
}
