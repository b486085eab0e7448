import { afterEach, expect, test } from "vitest";
import type { Channel } from "../../src/channels/contract.ts";
import { defineTool } from "../../src/runtimes/tools/define-tool.ts";
import { closeAll, withScript } from "../support/skein.ts";

afterEach(closeAll);

test("[LIB18] a message of a channel that comes while somebody else's turn runs is answered on its channel", async () => {
  const begun = Promise.withResolvers<void>();
  const open = Promise.withResolvers<string>();
  const gate = defineTool({
    name: "gate",
    description: "Waits.",
    execute: () => {
      begun.resolve();
      return open.promise;
    },
  });
  const sent: unknown[] = [];
  const desk: Channel = {
    id: "desk",
    deliver: async ({ text }, { to }) => ({ at: sent.push({ text, to }) }),
  };
  const opened = await withScript(
    (_, index) => (index === 0 ? { calls: [{ name: "gate" }] } : { text: `Yes. ${index}` }),
    { tools: [gate] },
    { channels: [desk] },
  );
  const session = opened.skein.session({ sessionId: "a" });
  const first = session.send("First");
  await begun.promise;
  const second = session.send("Second", { deliverTo: { channel: "desk", to: "ann" } });
  await opened.until("run.queued", ({ runId }) => runId === second.runId);
  open.resolve("open");
  expect((await first.result).reply).toBe("Yes. 1");
  expect((await second.result).reply).toBe("Yes. 2");
  await opened.until("outbox.delivered");
  expect(sent).toEqual([{ text: "Yes. 2", to: "ann" }]);
});

test("[RUN31] removing a session cuts off the turn that runs in it", async () => {
  const begun = Promise.withResolvers<void>();
  const cut = Promise.withResolvers<unknown>();
  const gate = defineTool({
    name: "gate",
    description: "Waits.",
    execute: (_, { signal }) => {
      begun.resolve();
      return new Promise<string>((_resolve, reject) =>
        signal.addEventListener("abort", () => {
          cut.resolve(signal.reason);
          reject(signal.reason);
        }),
      );
    },
  });
  const { skein, reported } = await withScript(
    [{ calls: [{ name: "gate" }] }],
    { tools: [gate] },
    { leaseMs: 3_600_000 },
  );
  const turn = skein.session({ sessionId: "a" }).send("Hello");
  await begun.promise;
  await skein.store.sessions.remove({ agentId: "main" }, "a");
  await cut.promise;
  await expect(turn.result).rejects.toMatchObject({ code: "aborted" });
  expect(reported).toEqual([]);
});
