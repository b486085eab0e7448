import type { Result } from "../../protocol/methods/method-table.ts";
import { noSuchSession } from "./no-such-session.ts";
import type { OpenCalls } from "./with-calls.ts";

type Resolved = Result<"sessions.resolve">;

/** The session that a person means, or an error that says where was looked. */
export async function resolveRef(open: OpenCalls, name: string): Promise<Resolved> {
  const { calls, reader } = open;
  try {
    return await calls.call("sessions.resolve", { key: name, prefix: true, ...reader });
  } catch (error) {
    if (codeIn(error) !== "not_found") throw error;
    const { sessions } = await calls.call("sessions.trash", reader);
    throw noSuchSession(open, name, sessions);
  }
}

/** The code of an error, whether it came from here or from a gateway. */
export function codeIn(error: unknown): string | null {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : null;
}
