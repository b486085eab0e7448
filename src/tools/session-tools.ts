import type { ToolCallOptions } from "../sessions/app.ts";
import type { RuntimeContext } from "../sessions/runtime-context.ts";
import type { Skein } from "../sessions/skein.ts";
import type { ForeignTool } from "./tool-adapters.ts";

/**
 * Returns the session tools that a session's rules allow, for your own agent loop, in the AI SDK's `tools` format.
 * Calls are made on behalf of that session, under its agent's hooks and rules. This Skein instance runs whatever a call
 * starts. Replies and sub-agents' results are sent to the session, which is created if it does not exist. If `runId` is
 * set (a tool receives it in its context), calls count toward that run's budget.
 *
 * @example
 * ```ts
 * import { generateText } from "ai";
 * import { createSkein, sessionTools } from "skein";
 * import { rehearsalModel } from "skein/testing";
 * const skein = await createSkein({ dir: ".skein" });
 * const tools = await sessionTools(skein, { userId: "ann", sessionKey: "agent:main:main" });
 * const { text } = await generateText({ model: rehearsalModel(), tools, prompt: "list the sessions" });
 * ```
 */
export async function sessionTools(
  skein: Skein,
  session: RuntimeContext & Pick<ToolCallOptions, "runId">,
): Promise<Readonly<Record<string, ForeignTool>>> {
  const { foreignTools } = await import("./tool-adapters.ts");
  await skein.session(session).open();
  const call = async (name: string, args: unknown, { signal }: { readonly signal: AbortSignal | null }) =>
    // Call IDs come from the loop and can repeat, so they cannot serve as idempotency keys.
    (await skein.callTool(name, args, { ...session, ...(signal === null ? {} : { signal }) })).result;
  return foreignTools(call, await skein.tools(session));
}
