// A process with a loop of its own. Its first step finishes; a tool of its second step kills the process.

import { generateText, isStepCount, jsonSchema, tool } from "ai";
import { openLoop } from "../../src/entry-ai-sdk.ts";
import { scriptedModel } from "../../src/entry-testing.ts";
import { createSkein } from "../../src/index.ts";

const [dir = ""] = process.argv.slice(2);
const inputSchema = jsonSchema<object>({ type: "object" });
const look = tool({ description: "Looks.", inputSchema, execute: async () => "three gardens" });
const crash = tool({
  description: "Kills its process.",
  inputSchema,
  execute: async () => {
    process.kill(process.pid, "SIGKILL");
    return new Promise<string>(() => undefined);
  },
});
const skein = await createSkein({ dir, config: null, env: {} });
const model = scriptedModel([{ calls: [{ name: "look" }] }, { calls: [{ name: "crash" }] }]);
const loop = await openLoop(skein, { userId: "ann", sessionId: "trip" }, { model });
const call = await loop.start("Plan three days in Kyoto");
await generateText({ model, tools: { look, crash }, stopWhen: isStepCount(5), ...call });
