import type { WalkWorld } from "./walk-world.ts";

/** The text that must not appear in a response to another user. */

const marker = /ann-secret-\d+/gi;
const insides = /\n\s+at |file:\/\/|node_modules|\.ts:\d+/;
const place = /\/(?:home|tmp|root|srv|usr|var|work|Users|private)\//;

/** Returns the markers in a response that the caller did not send itself. */
export function markersIn(text: string, params: unknown): string[] {
  // Longest first, because one marker can be a prefix of another.
  const own = stringsIn(params).sort((one, other) => other.length - one.length);
  return (
    own.reduce((rest, each) => rest.replaceAll(JSON.stringify(each).slice(1, -1), ""), text).match(marker) ??
    []
  );
}

/** Finds program internals, and file paths in responses to callers without the `admin` scope. */
export function insidesIn(text: string, isAdmin = false): string[] {
  const found = [insides.exec(text)?.[0] ?? "", isAdmin ? "" : (place.exec(text)?.[0] ?? "")];
  return found.filter((each) => each !== "");
}

function stringsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(stringsIn);
}

/** Returns the same params with names that do not exist, along with the reverse mapping. */
export class Nowhere {
  readonly #twins: readonly (readonly [string, string])[];

  constructor({ runId, approvalId, deadId, queuedId, entryId, secondId, sha256 }: WalkWorld) {
    const ids = [runId, approvalId, deadId, queuedId, entryId, secondId, sha256];
    this.#twins = [
      ["ann-secret", "non-secret"],
      ["ANN-SECRET", "NON-SECRET"],
      ...ids.map((id) => [id, `${id.slice(0, -6)}${id.endsWith("ffffff") ? "eeeeee" : "ffffff"}`] as const),
    ];
  }

  of<T>(params: T): T {
    return JSON.parse(this.#swapped(JSON.stringify(params), 0, 1)) as T;
  }

  back(text: string): string {
    return this.#swapped(text, 1, 0);
  }

  #swapped(text: string, from: 0 | 1, to: 0 | 1): string {
    return this.#twins.reduce((rest, twin) => rest.replaceAll(twin[from], twin[to]), text);
  }
}

/** Nested in this many brackets. */
export function nested(depth: number): string {
  return `${"[".repeat(depth)}${"]".repeat(depth)}`;
}
