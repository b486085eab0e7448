import { SkeinError } from "../core/errors.ts";
import type { MetaPatch, SessionMeta } from "./contract.ts";

/** The rules for a session's metadata, the same in every store. */

/** Written once: who somebody's parent is does not change, nor as what and with which tools it was spawned. */
const writtenOnce = [
  "spawnedBy",
  "spawnDepth",
  "spawnLimit",
  "spawnMode",
  "ownThread",
  "role",
  "rootId",
  "toolLayers",
];
const longestLabel = 512;

/** First values of a new session. */
export function firstMeta(meta: SessionMeta = {}): SessionMeta {
  return applyPatch({}, meta);
}

/** The metadata after a patch. The same object when nothing changes. */
export function applyPatch(meta: SessionMeta, patch: MetaPatch): SessionMeta {
  const changed = Object.entries(patch).filter(
    ([field, value]) => value !== undefined && JSON.stringify(meta[field] ?? null) !== JSON.stringify(value),
  );
  if (changed.length === 0) return meta;
  for (const [field, value] of changed) {
    if (writtenOnce.includes(field) && meta[field] !== undefined) {
      throw new SkeinError("conflict", {
        problem: `"${field}" of a session is written once`,
        advice: "Leave it out; it stays as it is",
      });
    }
    if (field === "label" && value !== null) checkLabel(value);
  }
  const next = { ...meta, ...Object.fromEntries(changed) };
  return Object.fromEntries(Object.entries(next).filter(([, value]) => value !== null)) as SessionMeta;
}

function checkLabel(label: unknown): void {
  const fits =
    typeof label === "string" && label.trim() === label && label !== "" && label.length <= longestLabel;
  if (!fits) {
    throw new SkeinError("invalid_arguments", {
      problem: "A session's label must be text without blanks around it",
      advice: `Use 1 to ${longestLabel} characters`,
    });
  }
}
