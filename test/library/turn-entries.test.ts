import { afterEach, describe, expect, test } from "vitest";
import type { Turn } from "../../src/index.ts";
import { defineTool } from "../../src/index.ts";
import { closeAll, withScript } from "../support/skein.ts";
import { textOf } from "../support/text.ts";

afterEach(closeAll);

/** Returns the texts of the messages that a turn reports. */
async function shownBy(turn: Turn): Promise<string[]> {
  const shown: string[] = [];
  for await (const event of turn) {
    if (event.type !== "entry" || event.entry.type !== "message") continue;
    const { message } = event.entry;
    if (message.role === "user" || message.role === "assistant" || message.role === "toolResult")
      shown.push(textOf(message.content));
  }
  return shown;
}

function gate() {
  const begun = Promise.withResolvers<void>();
  const open = Promise.withResolvers<string>();
  const tool = defineTool({
    name: "gate",
    description: "Waits.",
    execute: () => {
      begun.resolve();
      return open.promise;
    },
  });
  return { tool, begun: begun.promise, open: () => open.resolve("open") };
}

describe("the entries that a turn reports", () => {
  test.each([
    ["followup", ["Second", "Done 2."]],
    ["steer", ["Second", "Done 1."]],
  ] as const)("[LIB1] are its own, while others wait in the session: %s", async (queueMode, expected) => {
    const { tool, begun, open } = gate();
    const { skein, until } = await withScript(
      (_, index) => (index === 0 ? { calls: [{ name: "gate" }] } : { text: `Done ${index}.` }),
      { tools: [tool] },
    );
    const session = skein.session({ sessionId: "a" });
    const first = session.send("First");
    await begun;
    const second = session.send("Second", { queueMode });
    await until("run.queued", ({ runId }) => runId === second.runId);
    open();
    expect(await shownBy(second)).toEqual(expected);
    const whole = queueMode === "steer" ? ["Second", "Done 1."] : ["Done 1."];
    expect(await shownBy(first)).toEqual(["First", "", "open", ...whole]);
  });
});
