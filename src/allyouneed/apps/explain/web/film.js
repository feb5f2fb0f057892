// A film of a training run, or of several runs next to each other: showFilm(root, texts) fills `root`.
//
//   texts    [{ text, answer, films }]: for each text that can be chosen, its films; `answer` is the right output if the
//            decoder read it, as in training. Without it the decoder read its own output.
//   films    [{ name, frames }]: the first is that of the whole model; any of the others can be shown beside it
//   frames   [{ step, loss, output, source, inputs, target, cross, self }], as explain/film.py makes them, and `exact`, the
//            share of right translations in % if it was measured. What is missing in a frame is as in the one before it.
//            cross (target × source) and self (target × inputs) are bytes in base64, 255 for a weight of 1.
//
// All films have the same number of frames, after the same updates.

const SPEED = 220; // milliseconds that a frame is shown

function showFilm(root, texts) {
  for (const film of texts.flatMap(({ films }) => films)) {
    film.frames.forEach((frame, index) => (film.frames[index] = { ...film.frames[index - 1], ...frame }));
  }
  const last = texts[0].films[0].frames.length - 1;
  const state = { text: 0, beside: 1, side: "cross", at: last };
  let timer = null, panels = [];

  const slider = make("input", { type: "range", min: "0", max: String(last), value: String(last), "aria-label": "Update",
    oninput: () => { pause(); go(Number(slider.value)); } });
  const play = make("button", { type: "button", class: "play", onclick: () => (timer ? pause() : start()) }, "▶ Train");
  const reading = make("p", { class: "reading soft", role: "status" });
  const curve = make("div", { class: "curve" });
  const stage = make("div", { class: "stage" });
  const sides = make("div", { role: "group", "aria-label": "Attention to", class: "buttons" });
  const breaks = make("div", { role: "group", "aria-label": "Beside it, trained without", class: "buttons" });
  const broken = make("div", { class: "controls" }, make("b", {}, "Break it: without"), breaks);
  const choose = make("select", { "aria-label": "Text", onchange: () => { state.text = Number(choose.value); build(); } },
    ...texts.map(({ text }, index) => make("option", { value: String(index) }, text)));
  const chosen = () => texts[state.text].films;
  const shown = () => [chosen()[0], ...(state.beside ? chosen().slice(state.beside, state.beside + 1) : [])];

  function start() {
    if (state.at === last) go(0);
    play.textContent = "❚❚ Pause";
    timer = setInterval(() => { if (state.at === last) pause(); else go(state.at + 1); }, SPEED);
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    play.textContent = "▶ Train";
  }

  // Show a frame in the existing panels.
  function go(at) {
    state.at = at;
    slider.value = String(at);
    const { step, loss } = shown()[0].frames[at];
    slider.setAttribute("aria-valuetext", `update ${step}${loss === null ? "" : `, loss ${number(loss)}`}`);
    curve.querySelector(".now").setAttribute("x1", curve.x(at));
    curve.querySelector(".now").setAttribute("x2", curve.x(at));
    curve.querySelector(".update").textContent = `update ${step}`;
    panels.forEach((panel, index) => panel.show(shown()[index].frames[at]));
  }

  // Draw everything that depends on the text, on the films next to the model, and on the kind of drawing.
  function build() {
    choice(sides, ["the source", "the answer"], ["cross", "self"].indexOf(state.side), (index) => { state.side = ["cross", "self"][index]; build(); });
    broken.hidden = chosen().length === 1;
    choice(breaks, ["nothing", ...chosen().slice(1).map(({ name }) => name)], state.beside, (index) => { state.beside = index; build(); });
    const films = shown(), width = Math.min(460, (root.clientWidth - 24 * (films.length - 1)) / films.length);
    panels = films.map((film, index) => filmPanel(film, texts[state.text].answer, state.side, width, index ? `without ${film.name}` : film.name, (text) => (reading.textContent = text)));
    stage.replaceChildren(...panels.map((panel) => panel.root));
    reading.textContent = "Point at a square, or move among them by the arrow keys, to read its weight.";
    const drawn = lossCurve(films, Math.max(240, curve.clientWidth || root.clientWidth));
    curve.x = drawn.x;
    curve.replaceChildren(drawn.svg);
    go(state.at);
  }

  root.replaceChildren(
    make("div", { class: "controls" }, play, ...(texts.length > 1 ? [make("label", {}, "Text ", choose)] : []), make("div", { class: "controls" }, "Attention to", sides)),
    broken, curve, slider, stage, reading);
  build();
  let before = root.clientWidth;
  new ResizeObserver(() => { if (root.clientWidth !== before) { before = root.clientWidth; build(); } }).observe(root);
}

// Draw one model at one moment: its translation, its loss, and one of its attentions.
function filmPanel(film, answer, side, width, title, say) {
  const output = make("output", { class: "written", dir: "auto" }), facts = make("p", { class: "soft" }), place = make("div", {});
  const rows = answer === undefined ? "Each row is a token that the model writes." : "Each row is a token of the right answer, which the model reads in training.";
  let drawn = null, before = "";
  return {
    root: make("section", { "aria-label": title || film.name || "The model" }, ...(title ? [make("h3", {}, title)] : []), make("p", { class: "soft" }, "It writes on its own:"), output, facts, make("p", { class: "soft rows" }, rows), place),
    show(frame) {
      output.replaceChildren(isolated(frame.output.trim() ? frame.output : "␣".repeat(Math.max(1, frame.output.length))));
      output.classList.toggle("right", frame.output === answer);
      const exact = frame.exact === undefined ? [] : [`${number(Number(frame.exact.toFixed(1)))} % of unseen texts right`];
      facts.textContent = [frame.loss === null ? "not trained yet" : `loss ${number(frame.loss)}, as good as choosing among ${Math.exp(frame.loss).toFixed(1)} tokens`, ...exact].join(" · ");
      const columns = side === "cross" ? frame.source : frame.inputs, rows = frame.target;
      const values = fromBytes(frame[side], rows.length, columns.length);
      const labels = JSON.stringify([rows, columns]);
      if (drawn && labels === before) drawn.fill(values);
      else {
        const short = (piece) => ({ label: /^<.os>$/.test(piece) ? "·" : piece });
        const left = 14 + Math.max(...rows.map((piece) => textWidth(short(piece).label)));
        drawn = heatmap({ rows: rows.map(short), columns: columns.map(short), values, reach: 1,
          size: Math.max(9, Math.min(18, Math.floor((width - left) / columns.length))),
          label: `${title || "The model"}: from ${answer === undefined ? "what it writes" : "the right answer"}, in rows, to what it reads`,
          onRead: (r, c) => say(`${title ? `${title}: ` : ""}before it writes “${rows[r]}”, “${columns[c]}” has ${percent(drawn.values[r][c])} of its attention`) });
        place.replaceChildren(wide(drawn, title || "Attention"));
        before = labels;
      }
      drawn.values = values;
    },
  };
}

function fromBytes(text, rows, columns) {
  const bytes = atob(text);
  return Array.from({ length: rows }, (_, r) => Array.from({ length: columns }, (_, c) => bytes.charCodeAt(r * columns + c) / 255));
}

// Draw the losses of films over their frames, with a line that marks a frame: { svg, x }.
function lossCurve(films, width) {
  const height = 76, edge = 9, losses = films.flatMap(({ frames }) => frames.map(({ loss }) => loss)).filter((loss) => loss > 0);
  const top = Math.log(Math.max(...losses)), bottom = Math.log(Math.min(...losses));
  const count = films[0].frames.length - 1;
  const x = (index) => edge + (index / Math.max(1, count)) * (width - 2 * edge);
  const y = (loss) => 20 + ((top - Math.log(loss)) / (top - bottom || 1)) * (height - 26);
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `Training loss, on a logarithmic axis: ${films.map(({ name, frames }) => `${name}, ${number(frames.at(-1).loss)} at the end`).join("; ")}` });
  films.forEach(({ frames }, index) => svg.append(draw("polyline", { class: index ? "loss beside" : "loss",
    points: frames.map(({ loss }, at) => (loss > 0 ? `${x(at).toFixed(1)},${y(loss).toFixed(1)}` : "")).join(" ") })));
  svg.append(draw("line", { class: "now", y1: 16, y2: height }),
    draw("text", { class: "soft", x: edge, y: 11 }, "training loss (logarithmic)"),
    draw("text", { class: "update", x: width - edge, y: 11, "text-anchor": "end" }));
  return { svg, x };
}
