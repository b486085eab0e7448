import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { isCorrupt, parseSession, SessionTree } from "../../src/index.ts";

const folder = fileURLToPath(new URL("sessions/", import.meta.url));

/** The rules that a golden file demonstrates; each file has its reviewed reading next to it. */
const rules: Record<string, string> = {
  "v1.jsonl": "[ENT8] version 1",
  "v1-damaged.jsonl": "[ENT8] version 1 with a damaged line before the kept index",
  "v2.jsonl": "[ENT8] version 2",
  "v3.jsonl": "[CTX2] version 3, every type",
  "later-types.jsonl": "[ENT3] [CTX4] [CTX5] [TRE17] later types, roles and blocks",
  "foreign-lines.jsonl": "[ENT11] foreign lines, byte order mark, CRLF, no final newline",
  "newer.jsonl": "[ENT13] a newer version",
  "torn-tail.jsonl": "[ENT4] a torn last line",
  "null-line.jsonl": "[ENT4] lines that are JSON but not an object",
  "not-utf8.jsonl": "[ENT4] [TRE11] a line that is not UTF-8",
  "lost-header.jsonl": "[ENT12] a lost header",
  "torn-header.jsonl": "[ENT12] a torn header",
  "missing-parent.jsonl": "[TRE12] a missing parent",
  "bridged-parent.jsonl": "[TRE11] a parent on a damaged line, with two children",
  "cycle.jsonl": "[TRE13] a cycle of two",
  "self-parent.jsonl": "[TRE13] an entry that is its own parent",
  "duplicate-id.jsonl": "[TRE14] [ENT12] repeated IDs and a second header",
  "unknown-kept.jsonl": "[CTX3] a missing kept entry",
  "kept-nothing.jsonl": "[CTX3] a compaction that deliberately keeps nothing",
  "nulls.jsonl": "[ENT7] null for absent fields, strings for blocks",
  "invalid-entries.jsonl": "[ENT6] known types with a wrong shape",
  "two-roots.jsonl": "[TRE7] [CTX1] a reset to before the root",
  "moved-leaf.jsonl": "[TRE2] [TRE3] a moved leaf, with a label after it",
};

describe("golden sessions", () => {
  test("every golden file is in the table", () => {
    const files = readdirSync(folder).filter((file) => file.endsWith(".jsonl"));
    expect(files.toSorted()).toEqual(Object.keys(rules).toSorted());
  });

  test.each(Object.entries(rules).map(([file, rule]) => [rule, file] as const))("%s: %s", async (_, file) => {
    const bytes = readFileSync(new URL(file, `file://${folder}`));
    const session = parseSession(bytes);
    const tree = SessionTree.from(session, { lostHeader: { id: file } });
    const { model, thinkingLevel, system, messages, diagnostics } = tree.context();
    const reading = {
      header: tree.header,
      version: session.version,
      readOnly: session.readOnly,
      corrupt: session.lines.filter(isCorrupt),
      parents: Object.fromEntries(
        Array.from(tree.entries(), ({ id }) => [id, tree.parentOf(id)?.id ?? null]),
      ),
      tip: tree.tipId,
      leaf: tree.leafId,
      name: tree.name,
      labels: Object.fromEntries(tree.labels),
      request: {
        ...(model === null ? {} : { provider: model.provider, model: model.modelId }),
        thinkingLevel,
        ...(system === null ? {} : { system }),
        messages,
      },
      diagnostics,
    };
    await expect(`${JSON.stringify(reading, null, 2)}\n`).toMatchFileSnapshot(`${folder}${file}.read.json`);
    expect(parseSession(bytes)).toEqual(session);
  });

  test.each(Object.keys(rules))("[TRE18] %s is the same tree after writing and reading", (file) => {
    const tree = SessionTree.from(parseSession(readFileSync(new URL(file, `file://${folder}`))));
    const again = SessionTree.from(parseSession(tree.encode()));
    expect([...again.entries()].map((entry) => entry.id)).toEqual(
      [...tree.entries()].map((entry) => entry.id),
    );
    for (const { id } of tree.entries()) expect(again.parentOf(id)?.id).toBe(tree.parentOf(id)?.id);
    expect({ tip: again.tipId, leaf: again.leafId, name: again.name }).toEqual({
      tip: tree.tipId,
      leaf: tree.leafId,
      name: tree.name,
    });
    expect(again.labels).toEqual(tree.labels);
    expect(again.context().messages).toEqual(tree.context().messages);
  });
});
