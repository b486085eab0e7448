import type { Entry } from "../../src/index.ts";

/**
 * Returns a run's messages as stable lines. IDs are replaced by their order, and times and signatures by their kind.
 */
export function goldenRun(entries: readonly Entry[]): string {
  const names = new Map<string, string>();
  const nameOf = (kind: string, value: string) => {
    const known = names.get(value) ?? `${kind}-${names.size + 1}`;
    names.set(value, known);
    return known;
  };
  const plain = (value: unknown, key = "", parent: Record<string, unknown> = {}): unknown => {
    if (Array.isArray(value)) return value.map((each) => plain(each));
    if (typeof value === "object" && value !== null) {
      const fields = value as Record<string, unknown>;
      return Object.fromEntries(
        Object.entries(fields).map(([name, each]) => [name, plain(each, name, fields)]),
      );
    }
    if (key === "timestamp") return "time";
    if (typeof value !== "string") return value;
    if (/signature|encrypted/i.test(key) && value !== "") return sealed(value, nameOf);
    if (key === "toolCallId" || (key === "id" && parent.type === "toolCall")) return nameOf("call", value);
    if (/^(?:id|parentId|itemId|responseId)$/.test(key)) return nameOf("id", value);
    if (key === "data" && value.length > 40) return `${value.slice(0, 16)}…`;
    return value;
  };
  return `${entries.map((entry) => JSON.stringify(plain(entry))).join("\n")}\n`;
}

/** Some signatures are JSON that contains an item ID. */
function sealed(value: string, nameOf: (kind: string, value: string) => string): string {
  return value.startsWith("{") ? "seal of an item" : nameOf("seal", value);
}
