import { createRequire } from "node:module";

type Measure = typeof import("string-width")["default"];

/** Its tables of characters take longer to load than the rest of what prints: loaded with the first text that needs them. */
const load = createRequire(import.meta.url);

let measure: Measure | null = null;

/** The columns that a text takes on a terminal, which may have colours. */
export function widthOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  measure ??= (load("string-width") as typeof import("string-width")).default;
  return measure(text);
}
