import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { FilesStore } from "../../src/entry-store.ts";
import type { EntryDraft } from "../../src/index.ts";
import { openFilesStore } from "../../src/store/files/store.ts";
import { SimStore } from "../support/sim-store.ts";
import { append, create, said } from "../support/store-calls.ts";

const scope = { agentId: "main" };
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "skein-redact-"));
  folders.push(made);
  return made;
}

const open = (root: string) => openFilesStore({ root, index: "in place" });
const sessionsOf = (root: string) => join(root, "agents/main/sessions");
const fork = (store: FilesStore, entryId: string) =>
  store.sessions.fork(scope, "s", entryId, { key: "agent:main:session:f", sessionId: "f", cwd: "/w" });

/** Returns the files under a folder that contain a given text. */
function holding(root: string, text: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name))
    .filter((path) => readFileSync(path, "latin1").includes(text));
}

describe("a redaction finds", () => {
  test("[ERZ1] an ID with quotes and backslashes", async () => {
    const root = folder();
    const store = await open(root);
    await create(store, scope, "s");
    const id = 'tg:"5"\\x';
    await store.sessions.append(scope, "s", [{ id, draft: said("xyzzysecret") }]);
    const { sessions } = await store.sessions.redact(scope, "s", [id]);
    expect(sessions).toEqual([{ sessionId: "s", entryIds: [id] }]);
    await store.close();
    expect(holding(root, "xyzzysecret")).toEqual([]);
  });

  test("[ERZ1] every line of a repeated ID, and a torn line before a retry, which stays a damaged line", async () => {
    const root = folder();
    const log = join(sessionsOf(root), "s.log.jsonl");
    let store = await open(root);
    await create(store, scope, "s");
    await store.close();
    const line = { type: "message", id: "d", parentId: null, timestamp: "2026-01-01T00:00:00.000Z" };
    const torn = JSON.stringify({ ...line, message: { role: "user", content: "xyzzysecret and more" } });
    appendFileSync(log, torn.slice(0, -8));
    store = await open(root);
    await store.sessions.append(scope, "s", [{ id: "d", draft: said("xyzzysecret and more") }]);
    appendFileSync(
      log,
      `${JSON.stringify({ ...line, message: { role: "user", content: "xyzzysecret" } })}\n`,
    );
    const before = readFileSync(log, "utf8").split("\n").length;
    await store.sessions.redact(scope, "s", ["d"]);
    expect(readFileSync(log, "utf8").split("\n")).toHaveLength(before);
    const context = await store.sessions.context(scope, "s");
    expect(context?.diagnostics.map(({ code }) => code)).toContain("corrupt_line");
    await store.close();
    expect(holding(root, "xyzzysecret")).toEqual([]);
  });

  test("[ERZ1] entries of a version 1 original, which have no IDs", async () => {
    const root = folder();
    mkdirSync(sessionsOf(root), { recursive: true });
    const time = "2026-01-01T00:00:00.000Z";
    const lines = [
      { type: "session", id: "v1", timestamp: time, cwd: "/" },
      { type: "message", timestamp: time, message: { role: "user", content: "xyzzysecret" } },
      { type: "message", timestamp: time, message: { role: "user", content: "stays" } },
    ];
    writeFileSync(
      join(sessionsOf(root), "v1.jsonl"),
      lines.map((line) => `${JSON.stringify(line)}\n`).join(""),
    );
    const store = await open(root);
    const page = await store.sessions.page(scope, "v1", { along: "all", limit: 5 });
    await store.sessions.redact(scope, "v1", [page?.entries[0]?.id ?? ""]);
    await store.close();
    expect(holding(root, "xyzzysecret")).toEqual([]);
    expect(holding(root, "stays").some((path) => path.endsWith(".orig"))).toBe(true);
  });

  test("[ERZ1] a fork created meanwhile, and a copy restored meanwhile", async () => {
    for (const way of ["fork", "restore"] as const) {
      const root = folder();
      const store = await open(root);
      await create(store, scope, "s");
      await append(store, scope, "s", "plain", "xyzzysecret");
      if (way === "restore") {
        await fork(store, "xyzzysecret");
        await store.sessions.remove(scope, "f");
      }
      const [{ sessions }] = await Promise.all([
        store.sessions.redact(scope, "s", ["xyzzysecret"]),
        way === "fork" ? fork(store, "xyzzysecret") : store.sessions.restore(scope, "f"),
      ]);
      expect(sessions.map(({ sessionId }) => sessionId)).toEqual(["s", "f"]);
      await store.close();
      expect(holding(root, '"content":"xyzzysecret"')).toEqual([]);
    }
  });

  test("[ERZ1] the working set left behind by an interrupted removal", async () => {
    const sim = new SimStore();
    let store = await sim.open();
    await create(store, scope, "s");
    await append(store, scope, "s", "xyzzysecret");
    await store.sessions.fork(scope, "s", "xyzzysecret", { key: "agent:main:f", sessionId: "f", cwd: "/w" });
    const working = "/store/agents/main/sessions/s.jsonl";
    sim.disk.fault = (operation, path) =>
      operation === "rename" && path.endsWith("/s.jsonl") ? { error: "EIO" } : null;
    await store.sessions.remove(scope, "s").catch(() => undefined);
    sim.disk.fault = () => null;
    await store.close();
    store = await sim.open();
    await store.sessions.redact(scope, "f", ["xyzzysecret"]);
    expect(sim.disk.textOf(working) ?? "").not.toContain('"content":"xyzzysecret"');
    await sim.dispose();
  });

  test("[ERZ1] copies and blobs while sessions cannot be indexed, of another user and of the same one", async () => {
    const root = folder();
    const store = await open(root);
    await create(store, scope, "s");
    const sha256 = await store.blobs.put(scope, Buffer.from("xyzzysecret in a blob"));
    const block = {
      type: "text",
      text: "cut",
      skein: { blob: { sha256, bytes: 9, mimeType: "text/plain", was: "text" } },
    };
    const draft = { type: "message", message: { role: "user", content: [block] } } as EntryDraft;
    await store.sessions.append(scope, "s", [{ id: "e", draft }]);
    await fork(store, "e");
    await create(store, scope, "lost");
    const eve = { userId: "eve", agentId: "main" };
    await create(store, eve, "x");
    await store.upkeep.bringUpIndex();
    for (const [at, name] of [
      [sessionsOf(root), "lost"],
      [join(root, "users/eve/agents/main/sessions"), "x"],
    ]) {
      for (const ending of [".jsonl", ".log.jsonl"]) rmSync(join(at ?? "", `${name}${ending}`));
    }
    await store.sessions.patch(eve, "x", { displayName: "x" }).catch(() => undefined);
    const { sessions } = await store.sessions.redact(scope, "s", ["e"]);
    expect(sessions.map(({ sessionId }) => sessionId)).toEqual(["s", "f"]);
    expect(await store.blobs.get(scope, sha256)).toBeNull();
    await store.close();
  });
});
