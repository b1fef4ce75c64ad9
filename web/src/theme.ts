/** Light and dark: as the system says, until the user chooses. */

import { byId, setAttribute, setIcon } from "./dom";

const KEY = "pondertree-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export function initTheme(changed: () => void): () => void {
  const button = byId("theme");
  const current = (): string => stored() ?? (dark.matches ? "dark" : "light");
  const apply = (): void => {
    const theme = current();
    document.documentElement.dataset.theme = theme;
    const other = theme === "dark" ? "light" : "dark";
    setIcon(button, theme === "dark" ? "sun" : "moon");
    setAttribute(button, "aria-label", `Use ${other} colours`);
    setAttribute(button, "title", `Use ${other} colours (D)`);
    changed();
  };
  const toggle = (): void => {
    try {
      localStorage.setItem(KEY, current() === "dark" ? "light" : "dark");
    } catch {
      // Without storage the system's choice stays.
    }
    apply();
  };
  button.addEventListener("click", toggle);
  dark.addEventListener("change", apply);
  apply();
  return toggle;
}
