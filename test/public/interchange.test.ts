import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { parseSession, SessionTree } from "../../src/index.ts";
import { anyEntry } from "../support/arbitraries.ts";
import { run } from "../support/cli.ts";
import type { ImportPayload } from "../support/payloads.ts";
import { sessionText } from "../support/session-text.ts";

const samples = fileURLToPath(new URL("../golden/interchange/", import.meta.url));
let home: TemporaryFolder;
let dir = "";
let count = 0;
beforeAll(() => {
  home = temporaryFolder();
});
beforeEach(() => {
  dir = join(home.path, `folder-${count++}`);
});
afterAll(() => home.remove());

async function skein(...args: string[]): Promise<string> {
  const { out, err, exit } = await run([...args, "--dir", dir], { cwd: home.path });
  expect({ err, exit }).toEqual({ err: "", exit: 0 });
  return out;
}
const exported = (ref: string, format = "jsonl") => skein("sessions", "export", ref, "--format", format);
const treeOf = (text: string) => SessionTree.from(parseSession(text));

/** The reviewed result of reading a sample: its entries and the notes about everything that was omitted. */
function reviewed(file: string): { readonly entries: unknown[]; readonly notKept: string[] } {
  const text = readFileSync(join(samples, `${file}.read.txt`), "utf8");
  const [head = "", notKept = ""] = text.split("\nnot kept:\n");
  const lines = head.split("\n").filter((line) => line.startsWith('{"type":'));
  return {
    entries: lines.slice(1).map((line) => JSON.parse(line)),
    notKept: notKept.split("\n").filter((line) => line !== ""),
  };
}

describe("sessions import", () => {
  test.each([
    "claude-code.jsonl",
    "claude-code-1.0.jsonl",
    "codex.jsonl",
    "codex-bare.jsonl",
    "codex-first.json",
    "codex-events.jsonl",
  ])("[INT3] [INT6] %s", async (file) => {
    const payload = JSON.parse(
      await skein("sessions", "import", join(samples, file), "--json"),
    ) as ImportPayload;
    const [done] = payload.imported;
    const { entries, notKept } = reviewed(file);
    const tree = treeOf(await exported(done?.sessionId ?? ""));
    // Returns the time, order and content of every message.
    const messages = (all: Iterable<unknown>) =>
      [...all].flatMap((each) => {
        const { id, parentId, timestamp, type, message } = each as Record<string, unknown>;
        return type === "message" ? [{ id, parentId, timestamp, message }] : [];
      });
    expect(messages(entries).length).toBeGreaterThan(1);
    expect(messages(tree.entries())).toEqual(messages(entries));
    const notes = (done?.notKept ?? []).map(
      ({ what, count, example }) => `${count} × ${what} (${example ?? ""})`,
    );
    expect(notes).toEqual(expect.arrayContaining(notKept));
  });
});

describe("sessions export", () => {
  test("[INT10] JSONL reads back as the same session", async () => {
    const file = join(home.path, "any.jsonl");
    await fc.assert(
      fc.asyncProperty(fc.array(anyEntry, { maxLength: 8 }), async (entries) => {
        writeFileSync(file, sessionText(...entries));
        const tree = treeOf(sessionText(...entries));
        const again = treeOf(await exported(file));
        const places = (of: SessionTree) => Array.from(of.entries(), ({ id }) => [id, of.parentOf(id)?.id]);
        expect(places(again)).toEqual(places(tree));
        expect([again.tipId, again.leafId, again.name]).toEqual([tree.tipId, tree.leafId, tree.name]);
        expect(again.context().messages).toEqual(tree.context().messages);
      }),
      { numRuns: 30 },
    );
  });

  test.each(["every-kind", "hostile"])("[INT12] the HTML of %s runs no script", async (sample) => {
    const html = await exported(join(samples, `${sample}.jsonl`), "html");
    expect(html).toMatch(/^<!doctype html>/i);
    expect(html).toContain("default-src 'none'");
    expect(html).not.toMatch(/<(?:script|iframe|object|embed|form|svg)\b/i);
    for (const [tag] of html.matchAll(/<[a-z][^>]*>/gi)) {
      expect(tag).not.toMatch(/\son[a-z]+\s*=/i);
      expect(tag).not.toMatch(/(?:href|src)\s*=\s*["']?\s*(?:javascript|vbscript|data:text)/i);
    }
  });
});
