/** Reading of values that came from outside. */

export type Fields = Readonly<Record<string, unknown>>;

/** The value as an object with fields; `null`: it is none. */
export function fieldsOf(value: unknown): Fields | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null;
}

/** The value as a list; `null`: it is none. */
export function listOf(value: unknown): readonly unknown[] | null {
  return Array.isArray(value) ? value : null;
}

export function isBlank(text: string): boolean {
  return text.trim() === "";
}

/** The path of a request without its query. */
export function pathOf(path: string): string {
  const query = path.indexOf("?");
  return query === -1 ? path : path.slice(0, query);
}
