import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ReadingFolder } from "../../../test/support/reading-folder.ts";
import { maskOfSecret, readingFolder, secret } from "../../../test/support/reading-folder.ts";
import { createRedactor } from "../../access/redaction/redactor.ts";
import { answered, said } from "../../conformance/expect.ts";
import type { EntryDraft } from "../../core/seal.ts";
import type { Params } from "../../protocol/method-table.ts";
import { maskFor } from "../auth/mask.ts";
import type { ReadMethod } from "./handlers.ts";

let folder: ReadingFolder;
let sha256 = "";
let image = "";
const scope = {};
const key = "agent:main:session:s";
const cwd = "/srv/nobodys-business";
/** Longer than any displayed text, with a secret where the text is truncated. */
const straddling = (at: number) => `${"x ".repeat(at / 2 - 8)}${secret} ${"y ".repeat(at)}`;

beforeAll(async () => {
  folder = await readingFolder();
  const { store } = folder;
  await store.sessions.create(scope, { key, sessionId: "s", cwd, meta: { displayName: `of ${secret}` } });
  sha256 = await store.blobs.put(
    { agentId: "main" },
    Buffer.from(`${"z".repeat(50)} ${secret} ${"z".repeat(50)}`),
  );
  image = await store.blobs.put({ agentId: "main" }, Buffer.from([0xff, 0xd8, 0xff, 0, 1, 2]));
  const blob = { sha256, bytes: 121, mimeType: "text/plain", was: "text" };
  const calling = answered("");
  if (calling.type !== "message" || calling.message.role !== "assistant") throw new Error("no answer");
  const drafts: EntryDraft[] = [
    said(straddling(200)),
    said(`wanted ${secret} here`),
    said(straddling(12_000)),
    {
      type: "message",
      message: {
        ...calling.message,
        content: [
          { type: "thinking", thinking: secret },
          { type: "text", text: `I say ${secret}` },
          { type: "toolCall", id: "c1", name: "run", arguments: { password: "opensesame", deep: [secret] } },
        ],
      },
    },
    {
      type: "message",
      message: {
        ...{ role: "toolResult", toolCallId: "c1", toolName: "run", isError: false, timestamp: 3 },
        content: [{ type: "text", text: "[a long text]", skein: { blob } }],
      },
    },
    {
      type: "message",
      message: {
        ...{ role: "bashExecution", command: `echo ${secret}`, output: secret, exitCode: 0, timestamp: 4 },
        ...{ cancelled: false, truncated: true, fullOutputPath: `${cwd}/out.txt` },
      },
    },
    { type: "custom_message", customType: "note", content: secret, display: true },
    { type: "session_info", name: `a name with ${secret}` },
  ];
  const ids = await folder.append(scope, "s", ...drafts);
  await folder.append(scope, "s", { type: "label", targetId: ids[0] ?? "", label: `the ${secret}` });
});
afterAll(() => folder.close());

const asked: readonly (readonly [ReadMethod, object])[] = [
  ["sessions.list", {}],
  ["sessions.list", { includeDetails: true }],
  ["sessions.get", { key }],
  ["sessions.preview", { keys: [key], maxChars: 205 }],
  ["sessions.tree", { key }],
  ["sessions.entries", { key, along: "all" }],
  ["sessions.search", { query: "wanted" }],
  ["sessions.context", { key, wire: true }],
  ["sessions.export", { key, format: "jsonl" }],
  ["sessions.export", { key, format: "md" }],
  ["sessions.export", { key, format: "html" }],
  ["chat.history", { sessionKey: key }],
];

describe("clients without the scope admin", () => {
  test.each(asked)("[WLK7] %s %j: get no secret, no part of one, and no path", async (method, params) => {
    const shown = JSON.stringify(await folder.reader(method, params as never));
    for (const told of [secret, secret.slice(0, 8), "opensesame", cwd, folder.dir])
      expect([told, shown.includes(told)]).toEqual([told, false]);
    expect(shown.includes(maskOfSecret)).toBe(true);
    const whole = JSON.stringify(await folder.admin(method, params as never));
    expect(whole.includes(secret)).toBe(true);
  });

  test("[WLK7] get queued input masked too", async () => {
    const run = { runId: "r1", state: "queued", createdAt: 7, message: { role: "user", content: secret } };
    const waiting = await readingFolder({ store: folder.store, pending: async () => [run as never] });
    const { pending } = await waiting.reader("chat.history", { sessionKey: key, limit: 1 });
    await waiting.close();
    expect(pending).toMatchObject([{ runId: "r1", content: maskOfSecret, isPartial: true }]);
  });

  test("[WLK7] an admin sees paths", async () => {
    const { sessions, path } = await folder.admin("sessions.list", {});
    expect([path, sessions[0]?.transcriptPath?.startsWith(folder.dir)]).toEqual([folder.dir, true]);
    expect((await folder.admin("sessions.get", { key })).cwd).toBe(cwd);
    expect(sessions[0]).not.toHaveProperty("cwd");
    const { summary } = await folder.admin("sessions.get", { key });
    expect(summary).toBeTruthy();
    const detailed = await folder.admin("sessions.list", { includeDetails: true });
    expect(detailed.sessions).toMatchObject([{ cwd, summary }]);
    const theirs = await folder.reader("sessions.list", { includeDetails: true });
    expect(theirs.sessions[0]).not.toHaveProperty("cwd");
    expect(theirs.sessions[0]?.summary).toBe((await folder.reader("sessions.get", { key })).summary);
    expect(await folder.reader("sessions.trash", {})).not.toHaveProperty("path");
  });

  test("[WLK7] IDs that clients rely on stay unchanged", async () => {
    const entries = async (call: typeof folder.admin) => call("sessions.entries", { key, along: "all" });
    const [theirs, ours] = [await entries(folder.reader), await entries(folder.admin)];
    const places = ({ entries: all }: typeof ours) =>
      all.map(({ id, parentId, type, timestamp }) => ({ id, parentId, type, timestamp }));
    expect(places(theirs)).toEqual(places(ours));
    expect([theirs.redacted, ours.redacted]).toEqual([true, undefined]);
    expect(JSON.stringify(theirs)).toContain(sha256);
  });

  test("[WLK7] a match only inside a secret is not a hit", async () => {
    const hits = async (call: typeof folder.admin) =>
      (await call("sessions.search", { query: "lily" })).hits.length;
    expect(await hits(folder.admin)).toBeGreaterThan(0);
    expect(await hits(folder.reader)).toBe(0);
  });

  test("get a text blob masked before it is split, in any pieces", async () => {
    const read = async (call: typeof folder.admin, length: number) => {
      const pieces: Buffer[] = [];
      for (let offset: number | undefined = 0; offset !== undefined; ) {
        const asked: Params<"blobs.get"> = { key, sha256, offset, length };
        const piece = await call("blobs.get", asked);
        expect(piece.offset).toBe(offset);
        pieces.push(Buffer.from(piece.data, "base64"));
        expect(Buffer.concat(pieces).byteLength).toBeLessThanOrEqual(piece.bytes);
        offset = piece.nextOffset;
      }
      return Buffer.concat(pieces).toString();
    };
    for (const length of [1, 7, 55, 1000]) {
      expect(await read(folder.admin, length)).toContain(secret);
      expect(await read(folder.reader, length)).toBe(`${"z".repeat(50)} ${maskOfSecret} ${"z".repeat(50)}`);
    }
    const picture = await folder.reader("blobs.get", { key, sha256: image });
    expect(Buffer.from(picture.data, "base64")).toEqual(Buffer.from([0xff, 0xd8, 0xff, 0, 1, 2]));
    expect(await folder.reader("blobs.get", { key, sha256: image, offset: 99 })).toMatchObject({ data: "" });
    await expect(folder.reader("blobs.get", { key, sha256: "0".repeat(64) })).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("[WLK7] get any value masked, at any depth", () => {
    const redactor = createRedactor({ secrets: [secret] });
    const leaf = fc.oneof(fc.constantFrom(secret, `a ${secret} b`, "plain"), fc.integer(), fc.constant(null));
    const name = fc.constantFrom("content", "message", "text", "skein", "blob", "data", "__proto__", secret);
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof({ maxDepth: 6 }, leaf, tie("list"), tie("object")),
      list: fc.array(tie("tree"), { maxLength: 4 }),
      object: fc.dictionary(name, tie("tree"), { maxKeys: 4 }),
    }));
    fc.assert(
      fc.property(tree, (value) => {
        const mask = maskFor({ redactor }, { isAdmin: false });
        expect(JSON.stringify(mask.value(value))).not.toContain(secret);
        expect(mask.hasMasked).toBe(JSON.stringify(value).includes(secret));
        expect(maskFor({ redactor }, { isAdmin: true }).value(value)).toBe(value);
      }),
    );
    let deep: unknown = secret;
    for (let depth = 0; depth < 20_000; depth++) deep = { content: [deep] };
    const mask = maskFor({ redactor }, { isAdmin: false });
    mask.value(deep);
    expect(mask.hasMasked).toBe(true);
  });
});
