import { readStored, writeStored } from "./stored.ts";

type Theme = "system" | "light" | "dark";

const slot = "skein.theme";

function readTheme(): Theme {
  const stored = readStored(slot);
  return stored === "light" || stored === "dark" ? stored : "system";
}

/** Sets the theme of the page, and stores a new choice. */
export function applyTheme(choice?: Theme): Theme {
  if (choice !== undefined) writeStored(slot, choice === "system" ? null : choice);
  const theme = choice ?? readTheme();
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  return theme;
}

/** The height of a row in pixels, for lists that compute their places: the `--row` of the style sheet. */
export function rowHeight(): number {
  return matchMedia("(pointer: coarse)").matches ? 44 : 28;
}

/** The color of a session: one of twelve threads, the same in every view. */
export function threadOf(sessionId: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < sessionId.length; index += 1) {
    hash = Math.imul(hash ^ sessionId.charCodeAt(index), 0x01000193);
  }
  // FNV's low bits are weak for short IDs; fold the high ones in.
  return ((hash ^ (hash >>> 15)) >>> 0) % 12;
}
