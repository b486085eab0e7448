import type { TreePayload } from "../../protocol/session-payloads.ts";
import type { OpenCalls } from "./with-calls.ts";

/** A session as params of methods name it. */
export interface NamedSession {
  readonly key: string;
  readonly agentId?: string;
  readonly userId?: string;
}

const pageSize = 10_000;

/** Every page of a session's tree as one: a command answers once. */
export async function wholeTree(
  { calls }: Pick<OpenCalls, "calls">,
  session: NamedSession,
): Promise<TreePayload> {
  const asked = { ...session, limit: pageSize };
  let { nextAfter, ...view } = await calls.call("sessions.tree", asked);
  const entries = [...view.entries];
  while (nextAfter !== undefined) {
    ({ nextAfter, ...view } = await calls.call("sessions.tree", { ...asked, after: nextAfter }));
    for (const entry of view.entries) entries.push(entry);
  }
  return { ...view, entries };
}
