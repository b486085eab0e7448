import { createHash } from "node:crypto";
import { SkeinError } from "../core/errors.ts";
import type { Scope } from "./contract.ts";

/** The rules for blobs, the same in every store. */

export function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** The agent that a blob belongs to; a scope of all agents has no place for it. */
export function agentOfBlob({ agentId }: Scope): string {
  if (agentId !== undefined) return agentId;
  throw new SkeinError("invalid_arguments", {
    problem: "A blob belongs to an agent",
    advice: "Name one in the scope",
  });
}
