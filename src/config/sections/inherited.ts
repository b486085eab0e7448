import { orNone } from "../settings/kinds.ts";
import type { Setting, ValueKind } from "../settings/setting.ts";

/** The two sides of a setting that an agent may have for itself, and `defaults` for all that say nothing. */

export const asDefaults = "as defaults says";

/** Of an agent. */
export function inherited<T>(about: string, kind: ValueKind<T>): Setting<T | null> {
  return {
    node: "setting",
    about: `${about}; null: ${asDefaults}.`,
    kind: orNone(kind, "what defaults says"),
    fallback: () => null,
  };
}

/** Of `defaults`. */
export function general<T>(about: string, kind: ValueKind<T>, fallback: T): Setting<T> {
  return { node: "setting", about, kind, fallback: () => fallback };
}
