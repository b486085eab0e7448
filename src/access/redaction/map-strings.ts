type Change = (text: string, key: string | null) => string;
type Container = Record<string, unknown> | unknown[];

/**
 * Copies a JSON value and changes every string in it, including field names. `change` receives the name of the field
 * that contains the string. Works at any nesting depth.
 */
export function mapStrings(value: unknown, change: Change): unknown {
  const root: unknown[] = [];
  const waiting: { readonly from: unknown; readonly into: Container; readonly key: string | null }[] = [];
  waiting.push({ from: value, into: root, key: null });
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { from, into, key } = next;
    if (typeof from !== "object" || from === null) {
      put(
        into,
        key,
        typeof from === "string" ? change(from, Array.isArray(into) ? null : key) : from,
        change,
      );
      continue;
    }
    const copy: Container = Array.isArray(from) ? [] : {};
    put(into, key, copy, change);
    for (const [name, each] of Object.entries(from).toReversed())
      waiting.push({ from: each, into: copy, key: name });
  }
  return root[0];
}

/** Numbers field names that collide, so that no field is lost. */
function put(into: Container, key: string | null, value: unknown, change: Change): void {
  if (Array.isArray(into)) {
    into.push(value);
    return;
  }
  const wanted = change(key ?? "", null);
  let name = wanted;
  for (let turn = 2; Object.hasOwn(into, name); turn++) name = `${wanted} (${turn})`;
  Object.defineProperty(into, name, { value, enumerable: true, configurable: true, writable: true });
}
