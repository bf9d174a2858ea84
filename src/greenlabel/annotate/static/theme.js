// Light or dark: as the system says, until the button says otherwise.

import { byId, icon } from "./dom.js";

const KEY = "greenlabel.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

export function startTheme(onTheme) {
  const button = byId("theme");
  let chosen = remembered();
  const apply = () => {
    const theme = chosen ?? (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    button.replaceChildren(icon(theme === "dark" ? "sun" : "moon"));
    button.setAttribute("aria-label", theme === "dark" ? "Light page" : "Dark page");
    onTheme(theme);
  };
  dark.addEventListener("change", apply);
  button.addEventListener("click", () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    remember(chosen);
    apply();
  });
  apply();
}

function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function remember(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Without storage the choice holds until the page is closed.
  }
}
