import { describe, expect, test } from "vitest";
import { deliveryError } from "../../../src/channels/contract.ts";
import type { RunSkein } from "../../support/run-skein.ts";
import { messagesOf, openRuns } from "../../support/run-skein.ts";

const where = { sessionId: "s" };

async function noteOf({ skein }: RunSkein): Promise<string> {
  for (;;) {
    const note = (await messagesOf(skein, "s")).find(({ role }) => role === "custom");
    if (note !== undefined) return JSON.stringify(note);
    await new Promise((resolve) => void setTimeout(resolve, 5));
  }
}

describe("dead letters", () => {
  test("[LIB19] a permanently rejected message is reported to its session without a model call", async () => {
    const refusal = deliveryError("c", "it answered 410", { permanent: true });
    const channel = { id: "c", deliver: () => Promise.reject(refusal) };
    const open = await openRuns({ script: [{ text: "For you." }, { text: "Here." }], channels: [channel] });
    await open.skein.session(where).send("Tell them", { deliverTo: { channel: "c", to: "people" } }).result;
    expect(await noteOf(open)).toMatch(/people over c was not delivered.*410.*For you\./);
    expect(await open.skein.outbox({ states: ["dead"] })).toHaveLength(1);
    expect((await open.skein.session(where).send("And now?").result).reply).toBe("Here.");
    expect(open.reports).toEqual([]);
    await open.skein.close({ graceMs: 0 });
  });
});
