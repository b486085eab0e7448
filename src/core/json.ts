/**
 * JSON.stringify for values nested as deep as they like: some versions of Node run out of stack. Only for what
 * JSON.parse gave, so there is nothing in it that has no JSON.
 */
export function stringifyJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError && /call stack/.test(error.message)) return stringifyDeep(value);
    throw error;
  }
}

export function stringifyDeep(value: unknown): string {
  const parts: string[] = [];
  /** Texts to be written as they are, and values still to be taken apart, the next one last. */
  const waiting: ({ text: string } | { value: unknown })[] = [{ value }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if ("text" in next) parts.push(next.text);
    else if (typeof next.value !== "object" || next.value === null) parts.push(JSON.stringify(next.value));
    else {
      const isArray = Array.isArray(next.value);
      const fields = Object.entries(next.value).filter(([, each]) => each !== undefined);
      waiting.push({ text: isArray ? "]" : "}" });
      for (const [index, [key, each]] of fields.toReversed().entries()) {
        const comma = index === fields.length - 1 ? "" : ",";
        waiting.push({ value: each }, { text: isArray ? comma : `${comma}${JSON.stringify(key)}:` });
      }
      parts.push(isArray ? "[" : "{");
    }
  }
  return parts.join("");
}
