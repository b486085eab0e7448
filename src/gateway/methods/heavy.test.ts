import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { ReadingFolder } from "../../../test/support/reading-folder.ts";
import { readingFolder } from "../../../test/support/reading-folder.ts";
import { Slices, sliceBytes } from "../../core/slices.ts";
import type { Principal } from "../auth/principal.ts";
import type { ChangeMethod } from "./handlers.ts";
import { changeHandlers } from "./handlers.ts";
import { localCalls } from "./local-calls.ts";

const entries = 600;
const text = "Rain over Kyoto, and the river is high. ".repeat(100);
const logBytes = entries * text.length;
const key = "long";

let folder: ReadingFolder;
let ids: readonly string[];
let sha256: string;

beforeAll(async () => {
  folder = await readingFolder();
  const { store } = folder;
  await store.sessions.create({}, { key: `agent:main:session:${key}`, sessionId: key, cwd: "/w" });
  const drafts = Array.from({ length: entries }, (_, index) => ({
    type: "message" as const,
    message: { role: "user" as const, content: `${index} ${text}`, timestamp: index },
  }));
  ids = await folder.append({}, key, ...drafts);
  sha256 = await store.blobs.put({ agentId: "main" }, Buffer.from(text.repeat(400)));
  await store.upkeep.bringUpIndex();
});
afterAll(() => folder.close());

/** Returns how many times a call yielded to the event loop. */
async function turnsOf(act: () => Promise<unknown>): Promise<number> {
  const turn = vi.spyOn(Slices.prototype, "turn");
  try {
    await act();
    return turn.mock.calls.length;
  } finally {
    turn.mockRestore();
  }
}

function change(method: ChangeMethod, params: object): Promise<unknown> {
  const principal: Principal = {
    tokenId: "a",
    name: "a",
    scopes: ["read", "write", "admin"],
    user: null,
    expiresAt: null,
  };
  const deps = { ...folder.deps, tokens: null as never };
  return localCalls<ChangeMethod>(changeHandlers(deps), principal).call(method, params as never);
}

const piLines = () => {
  const timestamp = "2026-01-01T00:00:00.000Z";
  const header = { type: "session", version: 3, id: "given", timestamp, cwd: "/w" };
  const lines = Array.from({ length: entries }, (_, index) => ({
    type: "message",
    id: `e${index}`,
    parentId: index === 0 ? null : `e${index - 1}`,
    timestamp,
    message: { role: "user", content: text, timestamp: 1 },
  }));
  return [header, ...lines].map((line) => `${JSON.stringify(line)}\n`).join("");
};

describe("calls do their reading and writing in slices", () => {
  const whole = Math.floor(logBytes / sliceBytes);
  const blob = Math.floor((400 * text.length) / sliceBytes);

  test.each<[string, number, () => Promise<unknown>]>([
    ["a tree", whole, () => folder.admin("sessions.tree", { key, limit: 10_000 })],
    ["a tree for a reader", whole, () => folder.reader("sessions.tree", { key, limit: 10_000 })],
    ["an export", 2 * whole, () => folder.admin("sessions.export", { key })],
    ["an export for a reader", 4 * whole, () => folder.reader("sessions.export", { key, format: "md" })],
    ["a page of entries", whole, () => folder.reader("sessions.entries", { key, limit: 1000 })],
    ["a page of history", whole, () => folder.reader("chat.history", { sessionKey: key, limit: 1000 })],
    ["usage", whole, () => folder.admin("sessions.usage", { since: 0 })],
    ["a blob", blob, () => folder.reader("blobs.get", { key, sha256 })],
    [
      "a fork with labels, whose log is not copied as bytes",
      2 * whole,
      async () => {
        await change("sessions.label", { key, entryId: ids[0], label: "first" });
        return change("sessions.fork", { key });
      },
    ],
    [
      "an import",
      3 * whole,
      () => change("sessions.import", { files: [{ name: "a.jsonl", content: piLines() }] }),
    ],
    ["a redaction", 3 * whole, () => change("sessions.redact", { key, entryIds: ids.slice(0, 100) })],
  ])("%s", async (_, turns, act) => {
    expect(await turnsOf(act)).toBeGreaterThanOrEqual(turns);
  });

  test("a cheap call among heavy ones is answered before any of them", async () => {
    const answered: string[] = [];
    const original = Slices.prototype.turn;
    let turns = 0;
    let cheap: Promise<unknown> = Promise.resolve();
    const turn = vi.spyOn(Slices.prototype, "turn").mockImplementation(function (this: Slices) {
      turns += 1;
      if (turns === 3) cheap = folder.reader("sessions.resolve", { key }).then(() => answered.push("cheap"));
      return original.call(this);
    });
    try {
      const heavy = Array.from({ length: 10 }, async () => {
        await folder.admin("sessions.export", { key });
        answered.push("heavy");
      });
      await Promise.all(heavy);
      await cheap;
    } finally {
      turn.mockRestore();
    }
    expect(answered[0]).toBe("cheap");
    expect(answered).toHaveLength(11);
  });
});
