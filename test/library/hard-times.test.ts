import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Type from "typebox";
import { afterEach, expect, test } from "vitest";
import type { TurnEvent } from "../../src/index.ts";
import { defineTool } from "../../src/index.ts";
import { answering, closeAll, newFolder, withScript } from "../support/skein.ts";
import { textOf } from "../support/text.ts";

afterEach(closeAll);

test("[LIB13] an approval timeout longer than a timer can measure does not fire early", async () => {
  const file = join(newFolder(), "skein.yaml");
  writeFileSync(file, "approvals:\n  timeoutSeconds: 2592000\n");
  const remove = defineTool({
    name: "remove",
    description: "Removes.",
    parameters: Type.Object({}),
    approval: true,
    execute: async () => "removed",
  });
  const script = [{ calls: [{ name: "remove", arguments: {} }] }, { text: "Done." }];
  const { skein, until, events, lines } = await withScript(script, { tools: [remove] }, { config: file });
  const turn = skein.session({ sessionId: "s" }).send("Remove it");
  const { approvalId } = await until("approval.requested");
  await sleep(100);
  expect(events.some(({ type }) => type === "approval.resolved")).toBe(false);
  await skein.approvals.resolve(approvalId, "approved");
  await turn.result;
  expect(await lines("s")).toContain("result: removed");
});

test("[LIB3] a run that is purged meanwhile rejects, and the wait ends", async () => {
  const dir = newFolder();
  const { skein, until } = await withScript([{ text: "One two", stall: true }], {}, { dir });
  const other = await withScript([], {}, { dir, workers: false });
  const turn = skein.session({ userId: "ann", sessionId: "s" }).send("Begin");
  await until("run.delta");
  await other.skein.store.purgeUser("ann");
  await expect(turn.result).rejects.toMatchObject({ code: "not_found" });
});

test("[LIB1] a waiting turn does not report the entries of earlier turns", async () => {
  const { skein } = await withScript(answering());
  const session = skein.session({ sessionId: "s" });
  const turns = Array.from({ length: 4 }, (_, i) => session.send(`${i}`, { queueMode: "followup" }));
  await Promise.all(turns.map(({ result }) => result));
  const said: string[][] = [];
  for (const turn of turns) {
    const events: TurnEvent[] = [];
    for await (const event of turn) events.push(event);
    said.push(
      events.flatMap((event) =>
        event.type === "entry" && event.entry.type === "message" && event.entry.message.role === "user"
          ? [textOf(event.entry.message.content)]
          : [],
      ),
    );
  }
  expect(said).toEqual([["0"], ["1"], ["2"], ["3"]]);
});

test("[LIB19] a message for a channel of another process is not a dead letter", async () => {
  const dir = newFolder();
  const told: string[] = [];
  const deliver = async ({ text }: { readonly text: string }) => {
    told.push(text);
    return {};
  };
  const channels = [{ id: "tg", deliver }];
  const front = await withScript([], {}, { dir, channels, workers: false });
  await front.skein.receive({ channel: "tg", messageId: "m1", peer: "ann", text: "Hello" });
  const beside = await withScript(answering(), {}, { dir });
  await beside.until("run.ended");
  await expect.poll(() => beside.skein.outbox()).toMatchObject([{ state: "queued", waitsForChannel: true }]);
  expect(await front.skein.outbox()).toMatchObject([{ attempts: 0, waitsForChannel: false }]);
  await beside.skein.close();
  await withScript(answering(), {}, { dir, channels });
  await expect.poll(() => told).toEqual(["Yes. 1"]);
});
