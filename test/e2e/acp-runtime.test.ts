import { afterEach, describe, expect, test } from "vitest";
import type { AcpSkein, AcpSkeinOptions } from "../support/acp/acp-skein.ts";
import { openAcpSkein } from "../support/acp/acp-skein.ts";
import { lineOf } from "../support/turn.ts";

/** Sessions that stand for those of an ACP agent: a real Skein in a folder, and the agent as a real child process. */

let open: AcpSkein[] = [];

async function skeinWith(options: AcpSkeinOptions = {}): Promise<AcpSkein> {
  const skein = await openAcpSkein(options);
  open.push(skein);
  return skein;
}

afterEach(async () => {
  const opened = open;
  open = [];
  for (const skein of opened) await skein.close();
});

describe("a turn of an ACP agent", () => {
  test("[ARU1] what it says, thinks and does is written, and its last words are the reply", async () => {
    const acp = await skeinWith({
      script: {
        turns: [
          [
            { think: "Let me see." },
            { say: "I look " },
            { say: "around." },
            {
              update: {
                sessionUpdate: "tool_call",
                toolCallId: "c1",
                title: "List",
                kind: "search",
                rawInput: { pattern: "*" },
              },
            },
            {
              update: {
                sessionUpdate: "tool_call_update",
                toolCallId: "c1",
                status: "completed",
                content: [{ type: "content", content: { type: "text", text: "a.txt" } }],
              },
            },
            { echo: true },
            { usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 } },
          ],
        ],
      },
    });
    const session = await acp.session();
    const { outcome, usage } = await acp.say(session, "Look around");
    expect(outcome).toMatchObject({ state: "ok", reply: "[Look around]" });
    expect((await acp.entries(session)).filter(({ type }) => type === "message").map(lineOf)).toEqual([
      "user: Look around",
      'assistant toolUse: thinking | I look around. | → search {"pattern":"*"}',
      "result search: a.txt",
      "assistant stop: [Look around]",
    ]);
    expect(usage).toMatchObject({ input: 10, output: 5, totalTokens: 15 });
    expect(acp.reports).toEqual([]);
  });
});
