export type Theme = "system" | "light" | "dark";

const slot = "skein.theme";

export function readTheme(): Theme {
  const stored = localStorage.getItem(slot);
  return stored === "light" || stored === "dark" ? stored : "system";
}

/** Sets the theme of the page, and stores a new choice. */
export function applyTheme(choice?: Theme): Theme {
  if (choice === "system") localStorage.removeItem(slot);
  else if (choice !== undefined) localStorage.setItem(slot, choice);
  const theme = choice ?? readTheme();
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  return theme;
}
