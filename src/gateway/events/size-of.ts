/** How many parts of a value are looked at; no event of ours has as many. */
const mostParts = 100_000;

/** About how many bytes a value takes in memory. Looks at no character of any text. */
export function sizeOf(value: unknown): number {
  let bytes = 0;
  const waiting: unknown[] = [value];
  for (let parts = 0; waiting.length > 0 && parts < mostParts; parts += 1) {
    const part = waiting.pop();
    bytes += 16;
    if (typeof part === "string") bytes += part.length;
    else if (Array.isArray(part)) for (const each of part) waiting.push(each);
    else if (typeof part === "object" && part !== null) {
      for (const name in part) {
        bytes += 8;
        waiting.push((part as Record<string, unknown>)[name]);
      }
    }
  }
  return bytes;
}
