// The page of the live models: what is typed and switched goes to the model, and its translation into the component.
{ // a scope of its own
const input = document.querySelector("#input"), root = document.querySelector(".explanation.live");
const number = (name) => Number(document.querySelector("#" + name).value);

function showHeads() {
  document.querySelector("#heads").replaceChildren(...translator.layers.map(({ name, title, heads }) => {
    const row = document.createElement("div");
    row.append(Object.assign(document.createElement("span"), { textContent: title }));
    for (let head = 0; head < heads; head++) {
      const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true, value: name + ":" + head });
      const label = document.createElement("label");
      label.append(box, " " + (head + 1) + " ");
      row.append(label);
    }
    return row;
  }));
}

function show() {
  for (const name of ["beam", "temperature"]) document.querySelector("#" + name + "-value").value = number(name);
  const switches = { headsOff: [...document.querySelectorAll("#heads input:not(:checked)")].map(({ value }) => value) };
  for (const box of document.querySelectorAll("[data-switch]")) switches[box.dataset.switch] = box.checked;
  const output = document.querySelector("#output");
  let result = { hypotheses: [] };
  try {
    result = translator.translate(input.value, { beam: number("beam"), temperature: number("temperature"), switches, numbers: true });
    output.value = result.hypotheses[0]?.text ?? "";
  } catch (error) {
    output.value = error.message;
  }
  root.hidden = !result.hypotheses.length;
  if (!root.hidden) showExplanation(root, traceOfTranslation(input.value, result, translator.layers, switches));
}
document.querySelector("#live-form").addEventListener("input", show);
document.querySelector("#live-form").addEventListener("submit", (event) => event.preventDefault());
chooseModel(document.querySelector("#model"), input, () => { showHeads(); show(); });
showHeads();
show();
}
