import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { family } from "../../test/support/cli.ts";
import type { FolderCalls } from "../../test/support/folder-calls.ts";
import { closeFolderCalls, openFolderCalls } from "../../test/support/folder-calls.ts";
import type { Calls } from "../protocol/calls.ts";
import type { Params } from "../protocol/method-table.ts";
import { SessionImporter } from "../sessions/import.ts";
import { importAll } from "../sessions/import-sources.ts";
import { findSources, importOverCalls } from "./import-sources.ts";

const samples = fileURLToPath(new URL("../../test/golden/interchange/", import.meta.url));
const plenty = { bytes: 20_000_000, files: 1000 };

let home = "";
let folder: FolderCalls;
let asked: Params<"sessions.import">[] = [];

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "skein-over-calls-"));
  folder = await openFolderCalls();
  asked = [];
});
afterEach(async () => {
  await closeFolderCalls();
  rmSync(home, { recursive: true, force: true });
});

/** Calls a folder's methods as if over a gateway. */
function overhearing(): Calls<"sessions.import"> {
  const calls = folder.as();
  return {
    call: (method, params, options) => {
      asked.push(params);
      return calls.call(method, params, options);
    },
  };
}

const over = (path: string, userId: string, room = plenty, from: "codex" | null = null) =>
  importOverCalls(
    overhearing(),
    findSources(path, "main"),
    { from, about: { userId, agentId: "main", keepMetadata: true } },
    () => undefined,
    room,
  );

async function directly(path: string, userId: string) {
  const cwdFor = (_agentId: string, wanted: string | null) => wanted ?? process.cwd();
  const [settings, clock] = [{ keepMetadata: true }, { now: () => 0 }];
  const options = { agentId: "main", dryRun: false, settings, clock, cwdFor };
  const importer = new SessionImporter(folder.store.sessions, { userId }, options);
  return importAll(importer, findSources(path, "main"), null);
}

function openclawFolder(): string {
  const sessions = join(home, "agents/work/sessions");
  mkdirSync(sessions, { recursive: true });
  cpSync(join(family, "main.jsonl"), join(sessions, "s1.jsonl"));
  cpSync(join(family, "gardens.jsonl"), join(sessions, "s2.jsonl"));
  cpSync(join(family, "food.jsonl"), join(sessions, "unlisted.jsonl"));
  writeFileSync(join(sessions, "bad.jsonl"), "nothing\n");
  const list = {
    "agent:work:telegram:direct:42": { sessionId: "s1", label: "ann", updatedAt: 1 },
    "agent:work:main": { sessionId: "s2", updatedAt: 1 },
    "agent:work:cron:daily": { sessionId: "gone", updatedAt: 1 },
    evil: { sessionId: "../../etc/passwd" },
  };
  writeFileSync(join(sessions, "sessions.json"), JSON.stringify(list));
  return home;
}

/** Failures are reported as they are found, so their order differs between the two payloads. */
const sorted = <T extends { readonly failed: readonly { readonly file: string }[] }>(payload: T) => ({
  ...payload,
  failed: payload.failed.toSorted((a, b) => (a.file < b.file ? -1 : 1)),
});

test.each([1000, 3, 2])("gives the same result over a gateway, with %d files per call", async (files) => {
  const path = openclawFolder();
  const direct = await directly(path, "bob");
  const done = await over(path, "carol", { ...plenty, files });
  expect(sorted(done)).toEqual(sorted(direct));
  expect(done.imported).toMatchObject([
    { key: "agent:work:telegram:user:42" },
    { key: "agent:work:main" },
    { sessionId: expect.any(String) },
  ]);
  for (const each of asked) expect(each.files.length).toBeLessThanOrEqual(files);
  expect(asked.length).toBe(Math.ceil(4 / (files - 1)));
});

test("respects the size limit of a call, and only an oversized file fails", async () => {
  const largest = { bytes: 7000, files: 1000 };
  const done = await over(family, "bob", largest);
  for (const { files } of asked) {
    const bytes = files.reduce((sum, file) => sum + Buffer.byteLength(JSON.stringify(file)), 0);
    expect(bytes).toBeLessThanOrEqual(largest.bytes);
  }
  const whole = await over(family, "carol");
  expect(done.imported.length + done.failed.length).toBe(whole.imported.length);
  expect(done.failed.length).toBeGreaterThan(0);
  expect(new Set(done.failed.map(({ code }) => code))).toEqual(new Set(["too_large"]));
});

test("sends only the sessions of the requested program from a folder", async () => {
  const { imported } = await over(samples, "bob", plenty, "codex");
  expect(imported.length).toBeGreaterThan(2);
  const names = asked.flatMap(({ files }) => files.map(({ name }) => name.slice(samples.length)));
  expect(names.every((name) => name.startsWith("codex"))).toBe(true);
});
