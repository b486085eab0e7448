import type { SkeinOptions } from "./app.ts";
import { checkOptions } from "./core/check-options.ts";
import type { Skein } from "./sessions/skein.ts";

/**
 * Opens the store, the queue, the agents and their tools. The modules are loaded when this function is called, not when
 * it is imported.
 *
 * @example
 * ```ts
 * import { createSkein, defineAgent } from "skein";
 * const skein = await createSkein({ dir: ".skein", agents: [defineAgent({ id: "main", model: "rehearsal/basic" })] });
 * const turn = skein.session({ userId: "alice", sessionId: "trip" }).send("Plan three days in Kyoto");
 * for await (const event of turn) if (event.type === "text") process.stdout.write(event.delta);
 * const { reply, usage } = await turn.result;
 * await skein.close();
 * ```
 */
export async function createSkein(options: SkeinOptions = {}): Promise<Skein> {
  const { openSkein, skeinOptionNames } = await import("./app.ts");
  checkOptions("createSkein", options, skeinOptionNames);
  return openSkein(options);
}
