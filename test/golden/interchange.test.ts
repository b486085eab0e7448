import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { encodeEntry } from "../../src/core/entries.ts";
import { atOnce } from "../../src/core/slices.ts";
import { parseSession, SessionTree } from "../../src/index.ts";
import { importSession as importing } from "../../src/interchange/import-session.ts";
import type { ImportedSession } from "../../src/interchange/imported-session.ts";
import { textOf } from "../support/text.ts";

const importSession = (...given: Parameters<typeof importing>) => atOnce(importing(...given));

const folder = fileURLToPath(new URL("interchange/", import.meta.url));
const read = (file: string) => readFileSync(`${folder}${file}`);

/** Sessions of other programs, each with its reviewed reading next to it. */
const samples: Record<string, string> = {
  "claude-code.jsonl": "[INT3] [INT6] Claude Code 2.1, every kind of line",
  "claude-code-1.0.jsonl": "[INT3] Claude Code 1.0",
  "agent-a9.jsonl": "a sub-agent's own file",
  "claude-code-damaged.jsonl": "Claude Code, damaged",
  "codex.jsonl": "[INT3] [INT6] Codex, every kind of line",
  "codex-bare.jsonl": "[INT3] Codex before it had an envelope",
  "codex-first.json": "[INT3] the first Codex",
  "codex-events.jsonl": "[INT3] Codex with events alone",
  "codex-damaged.jsonl": "Codex, damaged",
};

describe("golden imports", () => {
  test.each(Object.entries(samples).map(([file, rule]) => [rule, file] as const))(
    "%s: %s",
    async (_, file) => {
      const imported = importSession(read(file), { file });
      if (imported === null) throw new Error(`${file} was not recognised`);
      await expect(reading(imported)).toMatchFileSnapshot(`${folder}${file}.read.txt`);
    },
  );

  test.each(Object.keys(samples))("[NWC23] %s gives the same session each time", (file) => {
    expect(importSession(read(file), { file })?.tree.encode()).toBe(
      importSession(read(file).toString("utf8"), { file })?.tree.encode(),
    );
  });

  test.each(Object.keys(samples))("%s opens without findings after the import", (file) => {
    const { tree } = importSession(read(file), { file }) as ImportedSession;
    const again = SessionTree.from(parseSession(tree.encode()));
    expect(again.diagnostics).toEqual([]);
    expect([...again.entries()]).toEqual([...tree.entries()]);
    expect([again.tipId, again.leafId, again.name]).toEqual([tree.tipId, tree.leafId, tree.name]);
    expect(again.context()).toEqual(tree.context());
    expect(again.context().diagnostics).toEqual([]);
  });
});

/** An imported session in a reviewable form. */
function reading({ tree, notKept, ...session }: ImportedSession): string {
  const { messages, entryIds, model, thinkingLevel } = tree.context();
  const said = messages.map((message, index) => {
    const text = "content" in message ? textOf(message.content) : "summary" in message ? message.summary : "";
    return `${message.role} ${entryIds[index]} ${JSON.stringify(text.slice(0, 60))}`;
  });
  const lost = notKept.map(({ what, count, example }) => `${count} × ${what} (${example ?? ""})`);
  return [
    ...Object.entries(session).map(([field, value]) => `${field}: ${value}`),
    `leaf: ${tree.leafId}`,
    `labels: ${JSON.stringify([...tree.labels])}`,
    "",
    JSON.stringify(tree.header),
    ...Array.from(tree.entries(), encodeEntry),
    "",
    `what the model is shown (${model?.provider}/${model?.modelId}, thinking ${thinkingLevel}):`,
    ...said,
    "",
    "not kept:",
    ...lost,
    "",
  ].join("\n");
}
