import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { called, readingWorld, said } from "../../test/support/reading-tools.ts";
import type { EntryDraft } from "../core/seal.ts";
import type { Run } from "../runs/contract.ts";
import type { ToolResult } from "./session-tool.ts";
import { sessionsHistory } from "./sessions-history.ts";

type World = ReturnType<typeof readingWorld>;
const main = "agent:main:main";
const messagesOf = (result: ToolResult) => result.messages as Record<string, unknown>[];
const history = (world: World, args: object = {}) =>
  world.ask(sessionsHistory, { sessionKey: "main", ...args });
const wide = (size: number): EntryDraft => ({
  type: "message",
  message: {
    role: "user",
    content: Array.from({ length: size }, () => ({ type: "text" as const, text: "京".repeat(4000) })),
  },
});

/** Returns every page from one end to the other, in branch order. */
async function walk(world: World, how: "back" | "forward", args: object, from?: string) {
  const found: Record<string, unknown>[] = [];
  let pages = 0;
  for (let place = from; pages === 0 || place !== undefined; pages++) {
    const bound = place === undefined ? {} : how === "back" ? { before: place } : { after: place };
    const page = await history(world, { ...args, ...bound });
    expect(page.totalBytes as number).toBeLessThanOrEqual(80 * 1024);
    if (how === "back") found.unshift(...messagesOf(page));
    else found.push(...messagesOf(page));
    place = (how === "back" ? page.nextBefore : page.nextAfter) as string | undefined;
  }
  return found;
}

describe("sessions_history", () => {
  test("[RDT6] reaches all of ten thousand entries, back to the first", async () => {
    const world = readingWorld();
    const drafts = Array.from({ length: 10_000 }, (_, index) => said(`m${index}`));
    await world.create(main, {}, drafts);
    const found = await walk(world, "back", { limit: 1000 });
    expect(found.map(({ content }) => content)).toEqual(drafts.map((_, index) => `m${index}`));
  });

  test("[RDT6] pages cut by bytes, or with an oversized message, omit nothing on the way", async () => {
    const drafts = fc.array(fc.constantFrom("small", "large", "huge", "call"), {
      minLength: 1,
      maxLength: 12,
    });
    await fc.assert(
      fc.asyncProperty(
        drafts,
        fc.integer({ min: 1, max: 5 }),
        fc.boolean(),
        async (kinds, limit, includeTools) => {
          const world = readingWorld();
          await world.create(main, {}, [
            said("first"),
            ...kinds.flatMap((kind, index) => {
              if (kind === "call") return called(`c${index}`);
              return kind === "small" ? [said(`m${index}`)] : [wide(kind === "large" ? 3 : 9)];
            }),
          ]);
          const back = await walk(world, "back", { limit, includeTools });
          const { entries = [] } =
            (await world.store.sessions.page({}, await idOf(world), { along: "branch", limit: 1000 })) ?? {};
          const wanted = entries.filter(
            (entry) => entry.type === "message" && (includeTools || !isOfTools(entry.message)),
          );
          // A placeholder has no ID and replaces the message.
          expect(back.map(({ id }) => id ?? "large")).toEqual(
            wanted.map((entry) => (isHuge(entry) ? "large" : entry.id)),
          );
          const first = entries[0]?.id;
          expect([back[0], ...(await walk(world, "forward", { limit, includeTools }, first))]).toEqual(back);
        },
      ),
      { numRuns: 40 },
    );
  });

  const idOf = async (world: World) =>
    (await world.store.sessions.find({}, { by: "key", key: main }))[0]?.sessionId ?? "";
  const isHuge = (entry: object) => JSON.stringify(entry).length > 9 * 4000;
  const isOfTools = (message: { role: string; content?: unknown }) =>
    message.role === "toolResult" || JSON.stringify(message.content).includes("toolCall");

  test("[RDT6] shows the active branch or a range of it, and refuses unknown IDs", async () => {
    const world = readingWorld();
    const { sessionId } = await world.create(
      main,
      {},
      ["a", "b", "c", "d", "e"].map((text) => said(text)),
    );
    const all = messagesOf(await history(world));
    const [a, b, , d, e] = all.map(({ id }) => id as string);
    const texts = (result: ToolResult) => messagesOf(result).map(({ content }) => content);
    const range = await history(world, { after: a, before: e, limit: 2 });
    expect(texts(range)).toEqual(["b", "c"]);
    expect(range.nextBefore).toBe(b);
    const rest = await history(world, { after: range.nextAfter, before: e });
    expect(texts(rest)).toEqual(["d"]);
    expect(rest).not.toHaveProperty("nextAfter");
    expect(await history(world, { before: b })).toMatchObject({ nextAfter: a });
    await world.store.sessions.branch({}, sessionId, b ?? null);
    expect(texts(await history(world))).toEqual(["a", "b"]);
    await expect(history(world, { before: d })).rejects.toMatchObject({ code: "not_found" });
    await expect(history(world, { after: "nope" })).rejects.toMatchObject({ code: "not_found" });
  });

  test("[RDT6] the limit counts displayed messages; summaries and messages of programs count", async () => {
    const world = readingWorld();
    const { sessionId } = await world.create(main, {}, [
      said("one"),
      ...called("c1"),
      { type: "custom_message", customType: "note", content: "hidden", display: false },
      { type: "custom_message", customType: "note", content: "shown", display: true },
      ...called("c2"),
    ]);
    const kept = messagesOf(await history(world))[0]?.id as string;
    await world.store.sessions.append({}, sessionId, [
      {
        draft: {
          type: "compaction",
          summary: "so far",
          firstKeptEntryId: kept,
          tokensBefore: 1,
          details: {},
        },
      },
    ]);
    expect(messagesOf(await history(world, { limit: 3 }))).toMatchObject([
      { role: "user", content: "one" },
      { role: "custom", content: "shown" },
      { role: "compactionSummary", summary: "so far" },
    ]);
    const whole = messagesOf(await history(world, { includeTools: true }));
    expect(whole.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "custom",
      "assistant",
      "toolResult",
      "compactionSummary",
    ]);
    expect(JSON.stringify(whole)).not.toMatch(/usage|details|hidden/);
  });

  test("reports what was shortened, masked and omitted, and only then", async () => {
    const world = readingWorld({ secrets: ["tiger-tiger-tiger-tiger"] });
    await world.create(main, {}, [said("plain", "assistant")]);
    const plain = await history(world);
    expect(plain).toMatchObject({
      sessionKey: "main",
      messages: [{ role: "assistant", content: [{ type: "text", text: "plain" }] }],
      hardCapped: false,
      truncated: false,
      redacted: false,
      dropped: 0,
      totalBytes: Buffer.byteLength(JSON.stringify(plain.messages)),
    });
    for (const field of ["pending", "nextBefore", "nextAfter"]) expect(plain).not.toHaveProperty(field);
    await world.create("agent:main:session:s", {}, [
      ...Array.from({ length: 30 }, () => said("京".repeat(4001))),
      said("tiger-tiger-tiger-tiger"),
    ]);
    const capped = await world.ask(sessionsHistory, { sessionKey: "session:s" });
    expect(capped).toMatchObject({ hardCapped: true, truncated: true, redacted: true });
    expect((capped.dropped as number) + messagesOf(capped).length).toBe(31);
    expect(messagesOf(capped).length).toBe(7);
  });

  test("an oversized message is replaced by a placeholder", async () => {
    const world = readingWorld();
    await world.create(main, {}, [wide(9)]);
    expect(await history(world)).toMatchObject({
      messages: [{ role: "assistant", content: "[sessions_history omitted: message too large]" }],
      hardCapped: true,
      dropped: 1,
    });
  });

  test("shows accepted input that is not yet in the conversation, cleaned and limited", async () => {
    const waiting = (runId: string, content: unknown) =>
      ({ runId, message: { role: "user", content }, createdAt: 7, state: "queued" }) as unknown as Run;
    const secret = "tiger-tiger-tiger-tiger";
    const world = readingWorld({ secrets: [secret], pending: [waiting("r1", secret), waiting("r2", "b")] });
    await world.create(main);
    expect(await history(world)).toMatchObject({
      messages: [],
      pending: [
        { runId: "r1", role: "user", content: "tiger-…iger", timestamp: 7, state: "queued" },
        { runId: "r2", content: "b" },
      ],
    });
    const many = Array.from({ length: 50 }, (_, index) => waiting(`r${index}`, "京".repeat(4000)));
    const crowd = readingWorld({ pending: many });
    await crowd.create(main);
    expect(await history(crowd)).toMatchObject({ pending: [{ runId: "r0" }], pendingDropped: 49 });
    const large = readingWorld({ pending: [waiting("big", wideContent)] });
    await large.create(main);
    expect(await history(large)).toMatchObject({ pending: [{ runId: "big", state: "queued" }] });
  });

  const wideContent = Array.from({ length: 9 }, () => ({ type: "text", text: "京".repeat(4000) }));

  test("[RDT6] a session that may not be read is refused with the decision", async () => {
    const world = readingWorld({ reach: { history: { treeOf: main, agentIds: [] } } });
    await world.create(main);
    await world.create("agent:main:user:bob", {}, [said("his")]);
    expect(await world.ask(sessionsHistory, { sessionKey: "agent:main:user:bob" })).toEqual({
      status: "forbidden",
      code: "tree_visibility_restricted",
      error: "refused",
    });
  });
});
