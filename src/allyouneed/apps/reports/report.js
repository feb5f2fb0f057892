"use strict";
// Axes: choose which of the two drawings of each figure is shown. This choice, and which parts are open, survive a
// reload.
const main = document.querySelector("main");
const key = name => "report " + location.pathname + " " + name;
const kept = name => { try { return sessionStorage.getItem(key(name)); } catch { return null; } };
const keep = (name, value) => { try { sessionStorage.setItem(key(name), value); } catch { /* not allowed: forgotten */ } };

for (const radio of document.querySelectorAll("[name=axes]")) {
  const show = () => { main.dataset.axes = radio.value; };
  radio.addEventListener("change", () => { show(); keep("axes", radio.value); });
  if (radio.value === kept("axes")) { radio.checked = true; show(); }
}

const parts = document.querySelectorAll("details");
parts.forEach((part, number) => {
  const open = kept("open " + number);
  if (open !== null) part.open = open === "true";
});
addEventListener("pagehide", () => parts.forEach((part, number) => keep("open " + number, part.open)));

for (const box of document.querySelectorAll(".wide")) {
  const sign = document.createElement("p");
  sign.className = "sign";
  sign.textContent = "↔ wider than the screen: scroll sideways";
  box.before(sign);
  new ResizeObserver(() => sign.classList.toggle("needed", box.scrollWidth > box.clientWidth + 1)).observe(box);
}

const refresh = document.getElementById("refresh");
if (refresh) {
  const seconds = Number(main.dataset.refresh), tooOld = 24 * 3600;
  refresh.checked = kept("refresh") !== "false";
  refresh.addEventListener("change", () => keep("refresh", refresh.checked));
  setInterval(() => {
    if (refresh.checked && Date.now() / 1000 - Number(main.dataset.written) < tooOld) location.reload();
  }, 1000 * seconds);
}
