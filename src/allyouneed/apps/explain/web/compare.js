// Show two traces of one text: showComparison(root, { names, traces, parting, heads, common_heads }) takes the data of
// comparison.py. A switch in the bar at the top chooses the trace; attention, head and drawing stay the same.

function showComparison(root, { names, traces, parting, heads, common_heads: common }) {
  const part = (name) => root.querySelector(`[data-part=${name}]`);
  const show = (which) => {
    showExplanation(root, traces[which]);
    choice(part("model-choice"), names, which, show);
    root.explanation.selection.refresh();
  };
  const look = (which, { attention, head }) => {
    show(which);
    const view = root.explanation.attention;
    view.show(traces[which].attention.findIndex(({ name }) => name === attention), head);
    part("attention-choice").scrollIntoView({ block: "center" });
    part("attention-choice").focus({ preventScroll: true });
  };
  const picture = (which, one) => {
    const attention = traces[which].attention.find(({ name }) => name === one.attention);
    return make("button", { type: "button", "aria-label": `Show ${one.title} of ${names[which]}`, onclick: () => look(which, one) },
      thumbnail(headsOf(attention)[one.head - 1]));
  };
  const candidates = (which) => parting.candidates[which].map(({ piece, probability, chosen }, index) =>
    make("span", {}, index ? ", " : "", make(chosen ? "b" : "span", { class: "mono" }, isolated(piece)), ` ${percent(probability)}`));
  const outputs = names.map((name, which) => [name, make("span", { class: "mono" }, isolated(traces[which].output)), ...(parting ? [make("span", {}, ...candidates(which))] : [])]);
  const where = parting
    ? `${parting.step ? `Equal until token ${parting.step + 1}, ` : "They differ from token 1 on, "}whose most probable tokens are in the table; the chosen one is bold.`
    : "The outputs are equal.";
  const rows = heads.map((one) => [one.title, ...one.findings.map((finding, which) => make("span", {}, picture(which, one), ` ${finding}`))]);
  part("comparison").replaceChildren(
    make("p", {}, where), wide(table(["model", "output", ...(parting ? [`token ${parting.step + 1}`] : [])], outputs), "The two outputs"),
    make("p", {}, `The pattern of ${heads.length} of ${common} heads differs.${heads.length ? " Press a picture to see the head." : ""}`),
    ...(rows.length ? [wide(table(["head", ...names], rows, { class: "compared" }), "Heads whose pattern differs")] : []));
  root.querySelector("[data-view=comparison]").hidden = false;
  part("model-bar").hidden = false;
  show(0);
}
