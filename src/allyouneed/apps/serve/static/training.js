// The run that trains the model of this server: its progress, its curves, its worst translations, and what to do next.

import { fetchPage, fetchTraining } from "./api.js";
import { $, make } from "./dom.js";

const EVERY = 2000; // milliseconds between two looks
let kept = 0, worst = "", commands = "";

const minutes = (seconds) => {
  if (seconds == null) return "";
  const left = Math.max(1, Math.round(seconds / 60));
  return seconds < 60 ? "less than a minute" : `${left.toLocaleString()} ${left === 1 ? "minute" : "minutes"}`;
};

function showState(run) {
  const count = (number) => (number ?? 0).toLocaleString();
  const lines = {
    preparing: [run.about ? `${run.about}: ${count(run.done)}${run.total ? ` of ${count(run.total)}` : ""}` : "The pairs are being prepared.", run.message ?? ""],
    training: [`${count(run.step)} of ${count(run.steps)} updates`, run.seconds_left == null ? "" : `${minutes(run.seconds_left)} left`],
    finished: [`The training has ended after ${count(run.step || run.steps)} updates.`, "The model stays here until the program ends."],
  }[run.state] ?? [];
  if (run.valid_loss != null) lines.push(`It chooses among ${Math.exp(run.valid_loss).toLocaleString(undefined, { minimumFractionDigits: 1, maximumFractionDigits: 1 })} tokens (e^loss).`);
  $("training-title").firstChild.data = `${run.name ?? "The run"} `;
  $("training-state").textContent = run.state === "finished" ? "trained" : "learns";
  $("training-lines").replaceChildren(...[...lines, ...run.warnings ?? []].filter(Boolean).map((line) => make("span", {}, line)));
  const bar = $("training-bar");
  bar.hidden = run.state === "finished";
  if (run.state === "training" && run.steps) bar.value = run.step / run.steps;
  else bar.removeAttribute("value");
}

// The server draws the figures, as in the report.
function showCurves(run) {
  $("training-curves").innerHTML = run.losses + run.scores;
  for (const drawing of $("training-curves").querySelectorAll("svg.logarithmic")) drawing.remove();
}

// These are validation pairs, whose correct translation is known, so nothing is asked about them.
function showWorst(run) {
  const now = JSON.stringify(run.worst);
  if (now === worst) return;
  worst = now;
  $("training-worst-part").hidden = !run.worst.length;
  $("training-worst").replaceChildren(...run.worst.map((sample) => make("li", {},
    make("p", { dir: "auto" }, sample.source),
    make("p", { dir: "auto" }, sample.output),
    make("p", { class: "soft", dir: "auto" }, `Expected: ${sample.reference}`))));
}

// The final output of the command: how good the model is, next to baselines, and what to try next.
function showVerdict({ verdict }) {
  const place = $("training-verdict");
  if (!verdict || !place.hidden) return;
  const row = (tag, [name, ...values]) => make("tr", {},
    make("th", { scope: tag === "th" ? "col" : "row" }, name), ...values.map((value) => make(tag, {}, value)));
  const table = make("table", {}, make("thead", {}, row("th", verdict.header)), make("tbody", {}, ...verdict.rows.map((cells) => row("td", cells))));
  place.replaceChildren(
    make("h3", {}, "How good it is"),
    ...verdict.remarks.map((line) => make("p", {}, line)),
    ...(verdict.rows.length ? [table] : []),
    ...verdict.notes.map((line) => make("p", { class: "soft" }, line)),
    ...(verdict.advice.length ? [make("h3", {}, "What to try next"), make("ul", {}, ...verdict.advice.map((line) => make("li", {}, line)))] : []));
  place.hidden = false;
}

function showNext(run, onError) {
  if (run.state !== "finished") return;
  if (JSON.stringify(run.commands) !== commands) {
    commands = JSON.stringify(run.commands);
    $("training-commands").replaceChildren(...Object.entries(run.commands).flatMap(([what, command]) => [
      make("dt", {}, what), make("dd", {}, make("code", { tabindex: 0 }, command)),
    ]));
  }
  if (!$("training-next").hidden) return;
  $("training-next").hidden = false;
  $("training-download").parentElement.hidden = !run.exports_page; // a command installs what it needs
  $("training-download").addEventListener("click", async () => {
    const button = $("training-download"), label = button.textContent;
    button.disabled = true;
    button.textContent = "The page is being made …";
    try {
      const link = make("a", { href: URL.createObjectURL(await fetchPage()), download: `${run.name}.html` });
      link.click();
    } catch (error) { onError(error, () => button.click()); }
    button.disabled = false;
    button.textContent = label;
  });
}

// `onModel` is called with each new model.
export function setUpTraining({ onModel, onError }) {
  $("training").hidden = false;
  async function look() {
    try {
      const run = await fetchTraining();
      showState(run);
      showCurves(run);
      showWorst(run);
      showVerdict(run);
      showNext(run, onError);
      if (run.kept !== kept) {
        kept = run.kept;
        await onModel();
      }
    } catch (error) {
      if (error.kind !== "offline") { onError(error, look); return; }
      $("training-state").textContent = "stopped";
      $("training-lines").replaceChildren(make("span", {}, "The program has ended. What was learned is kept; its last lines name the command that goes on."));
      $("training-bar").hidden = true;
    }
    setTimeout(look, EVERY);
  }
  look();
}
