// Light or dark: the visitor's choice, or else the system's. Runs before the page is drawn.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => { try { return localStorage.getItem("allyouneed.theme"); } catch { return null; } };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  if (["light", "dark"].includes(stored())) root.dataset.theme = stored();

  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme-button");
    const show = () => button.setAttribute("aria-pressed", isDark());
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("allyouneed.theme", root.dataset.theme); } catch { /* no storage: until the page closes */ }
      show();
    });
    system.addEventListener("change", show);
    show();
  });
})();
