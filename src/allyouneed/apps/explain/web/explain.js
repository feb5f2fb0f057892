// The inside of a translation as a component: showExplanation(root, trace) fills the parts of `root` (explain.html).
//
// All sources of data, Python or a model that runs in the page, give a trace in this format:
//
//   text, output      strings: what was given, and its translation
//   model, notes      a line about the model; sentences that a reader must know
//   source            tokens of the text, with <sos> and <eos>: [{ piece, id }]
//   target            tokens of the translation, with <eos>, and `inputs`, what the decoder reads: target[t] is what it
//                     predicts after reading inputs[t]
//   search            { kind: "greedy" | "beam" | "sample", beam, ending }; `ending` is a sentence
//   steps             for each target token the likeliest: [{ piece, probability, chosen }], the best first, then the
//                     chosen one if it is none of them
//   tree              { nodes, expanded }: prefixes [{ piece, parent, total, chosen, ended }], a parent before its
//                     children; `total` is a log-probability, `ended` a score or null, `expanded` the number of all
//   attention         [{ name, title, rows, columns, weights }], `rows` and `columns` "source", "target" or "inputs";
//                     weights[head][row][column] from 0 to 1; where its squares open, also query[head][row][i],
//                     key[head][column][i] and value[head][column][i], and `divisor` if that is not √d_k
//   alignment         the name of the cross-attention that aligns
//   claims            [{ attention, head, text }]: what the sharpest heads do, measured over many inputs
//   heads             [{ attention, head, finding, without, entropy, strongest: { row, column, weight } }]; `without` is
//                     null where the finding is a pattern, otherwise what it is instead
//   lens              for each layer of the decoder { title, tokens: [{ piece, probability }] }
//   stream            [{ stack, part, norm, change }]
//   tensors           [{ name, group, title, rows, columns, note, values }]: `columns` is "dimension", a side as above or
//                     a list of pieces; values[row][column] or values[head][row][column]
//
// Weights and values are nested numbers (null: masked), or packed: unpack() in dom.js. A view hides whose data is missing
// or that has nothing to find: a search without branches, a logit lens of one layer.

// A second call shows another trace in the same parts, with the same attention, head and drawing.
function showExplanation(root, trace) {
  const before = root.explanation;
  before?.listeners.abort();
  const listeners = new AbortController(), { signal } = listeners;
  const parts = Object.fromEntries([...root.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
  for (const view of root.querySelectorAll("[data-view]")) {
    if (view.dataset.view === "comparison") continue;
    const needs = { steps: "steps", tree: "search", attention: "attention" }[view.dataset.view] ?? view.dataset.view;
    const hasNothing = { tree: () => !branches(trace), lens: () => trace.lens.length < 2 }[view.dataset.view];
    view.hidden = trace[needs] === undefined || trace[needs].length === 0 || (hasNothing?.() ?? false);
  }
  parts.headline.replaceChildren(isolated(trace.text), " → ", isolated(trace.output));
  parts.model.textContent = trace.model ?? "";
  parts.notes.replaceChildren(...(trace.notes ?? []).map((note) => make("p", {}, note)));

  let attention;
  const piece = (key) => {
    const [name, index] = key.split(":");
    return index === "-1" ? trace.inputs[0].piece : trace[name][index]?.piece;
  };
  const selection = new Selection(root, (keys) => {
    if (keys.length > 1) return;
    const [key] = keys;
    const about = key && attention?.describe(key);
    if (!key) return selection.say("Point at a token, or move to one by keyboard.");
    selection.say(...quoted(piece(key)), ` (${key.startsWith("source") ? "text" : "translation"}): `, ...(about?.length ? about : ["not in this attention"]));
  }, signal);
  selection.say = (...words) => parts.reading.replaceChildren(...words);

  tokenToolbar(parts.source, trace.source, "source", signal);
  tokenToolbar(parts.target, trace.target, "target", signal);
  piecesView(parts.pieces, trace);
  if (trace.attention?.length) attention = new AttentionView(parts, trace, selection, signal, before?.attention);
  if (trace.heads?.length) headsView(parts.heads, trace, attention);
  if (trace.steps?.length) stepsView(parts.steps, trace);
  if (trace.search) searchView(parts, trace);
  if (trace.alignment) alignmentView(parts, trace);
  if (trace.lens?.length) lensView(parts.lens, trace);
  if (trace.stream?.length) streamView(parts.stream, trace);
  if (trace.tensors?.length) tensorsView(parts, trace, selection, signal);
  selection.light([], true);
  root.explanation = { listeners, attention, selection };
}
