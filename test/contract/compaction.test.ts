import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { FilesStore, SessionRecord, Store } from "../../src/entry-store.ts";
import { compactSession, createStore } from "../../src/entry-store.ts";
import type { Entry, SessionContext } from "../../src/index.ts";
import { buildContext, isCorrupt, parseSession, SessionTree } from "../../src/index.ts";
import { compactionLimits, shouldCompact } from "../../src/transcript/compaction/limits.ts";
import { messageTokens } from "../../src/transcript/compaction/plan-cut.ts";
import { diligent, longStory, marksIn } from "../support/long-story.ts";
import { repetitions } from "../support/repetitions.ts";

/** A long conversation with many compactions, both in memory and in files. */

const scope = { userId: "ann", agentId: "main" };
const contextWindow = 72_000;
const turns = repetitions.compactedTurns;
const roots: string[] = [];
afterAll(() => {
  for (const root of roots) rmSync(root, { recursive: true, force: true });
});

const stores: Record<string, () => Promise<Store | FilesStore>> = {
  memory: () => createStore({ memory: true }),
  files: () => {
    const dir = mkdtempSync(join(tmpdir(), "skein-compaction-"));
    roots.push(dir);
    return createStore({ dir, durability: "os" });
  },
};

/** Whether a model can see any part of the entry. */
function speaks(entry: Entry): boolean {
  return entry.type === "message" || entry.type === "custom_message" || entry.type === "branch_summary";
}

/** pi's rule in its simplest form: the last compaction, the entries it kept, and the later entries. */
function byPisRule(path: readonly Entry[]): string[] {
  const last = path.findLastIndex((entry) => entry.type === "compaction");
  const compaction = path[last];
  if (compaction?.type !== "compaction") return path.filter(speaks).map(({ id }) => id);
  const before = path.slice(0, last);
  const kept = before.findIndex((entry) => entry.id === compaction.firstKeptEntryId);
  const chosen = [...(kept === -1 ? [] : before.slice(kept)), ...path.slice(last + 1)];
  return [compaction.id, ...chosen.filter(speaks).map(({ id }) => id)];
}

function tokensOf({ messages }: SessionContext): number {
  return messages.reduce((sum, message) => sum + messageTokens(message), 0);
}

/** Returns the content of a session's files, each read separately. */
function sameInFiles(store: FilesStore, session: SessionRecord, context: SessionContext): void {
  const files = store.upkeep.files(
    session.userId === null ? {} : { userId: session.userId },
    session.sessionId,
  );
  const log = parseSession(readFileSync(files?.log ?? ""));
  const working = parseSession(readFileSync(files?.working ?? ""));
  const fromLog = buildContext(log.lines);
  const fromWorkingSet = SessionTree.from(working).context();
  for (const each of [fromLog, fromWorkingSet]) {
    expect(each.entryIds).toEqual(context.entryIds);
    expect(each.messages).toEqual(context.messages);
    expect([each.model, each.thinkingLevel, each.diagnostics]).toEqual([
      context.model,
      context.thinkingLevel,
      [],
    ]);
  }
  const entries = log.lines.filter((line): line is Entry => !isCorrupt(line));
  expect(byPisRule(entries)).toEqual(context.entryIds);
  expect(working.lines.length).toBeLessThan(Math.max(500, log.lines.length / 2));
}

describe.each(Object.keys(stores))(`${turns} turns in %s`, (kind) => {
  test("[CMP19] [CMP20] every entry is in a summary's range or in the context, after each of many compactions", async () => {
    const store = await (stores[kind] as () => Promise<Store | FilesStore>)();
    const session = await store.sessions.create(scope, { key: "agent:main:main", cwd: "/w" });
    const { requests, summarize } = diligent();
    const path: Entry[] = [];
    /** Entries covered by a summary, in compaction order. */
    const summarized = new Set<string>();
    let kept: readonly string[] = [];
    let compactions = 0;
    let splits = 0;
    let turn = 0;
    const nowContext = async () => (await store.sessions.context(scope, session.sessionId)) as SessionContext;

    const compact = async () => {
      const asked = requests.length;
      const trigger = compactions % 3 === 0 ? "overflow" : "threshold";
      const outcome = await compactSession({ store }, scope, session, {
        summarize,
        contextWindow,
        mode: compactions % 4 === 3 ? "default" : "safeguard",
        trigger,
      });
      if (!outcome.done) throw new Error(outcome.note);
      compactions += 1;
      splits += outcome.summary.includes("## The request under way") ? 1 : 0;
      const context = await nowContext();
      const entry = await store.sessions.entry(scope, session.sessionId, outcome.entryId);
      path.push(entry as Entry);

      // The range that this compaction covers, from the previous compaction's first kept entry to its own.
      const from = kept.length === 0 ? 0 : path.findIndex(({ id }) => id === kept[0]);
      const to = path.findIndex(({ id }) => id === outcome.firstKeptEntryId);
      const range = path.slice(from, to).filter(speaks);
      for (const { id } of range) {
        expect(summarized.has(id)).toBe(false);
        summarized.add(id);
      }
      const given = marksIn(
        requests
          .slice(asked)
          .map(({ prompt }) => prompt)
          .join("\n"),
      );
      for (const each of range) {
        const missing = [...marksIn(JSON.stringify(each))].filter((mark) => !given.has(mark));
        // Long results are truncated in the middle. Their beginning and end remain.
        expect({ id: each.id, missing }).toEqual({ id: each.id, missing: [] });
      }

      const inContext = new Set(context.entryIds);
      const lost = path.filter(speaks).filter(({ id }) => !summarized.has(id) && !inContext.has(id));
      expect(lost).toEqual([]);
      expect(kept.filter((id) => !summarized.has(id) && !inContext.has(id))).toEqual([]);
      expect(context.entryIds).toEqual(byPisRule(path));
      expect(tokensOf(context)).toBe(outcome.tokensAfter);
      expect(outcome.tokensAfter).toBeLessThan(outcome.tokensBefore);
      expect(outcome.tokensAfter).toBeLessThanOrEqual(compactionLimits(contextWindow).threshold);
      if ("upkeep" in store && compactions % 3 === 1) sameInFiles(store, session, context);
      kept = context.entryIds.slice(1);
    };

    for (const { drafts } of longStory(turns)) {
      const { entries } = await store.sessions.append(
        scope,
        session.sessionId,
        drafts.map((draft) => ({ draft })),
      );
      path.push(...entries);
      turn += 1;
      if (turn % 4 !== 0) continue;
      const context = await nowContext();
      expect(context.entryIds.slice(-entries.filter(speaks).length)).toEqual(
        entries.filter(speaks).map(({ id }) => id),
      );
      if (shouldCompact({ tokens: tokensOf(context), contextWindow })) await compact();
    }
    expect(compactions).toBeGreaterThanOrEqual(Math.floor(turns / 70));
    expect(splits).toBeGreaterThanOrEqual(Math.floor(turns / 400));
    expect(requests.map(({ prompt }) => prompt).filter((prompt) => /hidden-\d/.test(prompt))).toEqual([]);
    const last = await store.sessions.entry(scope, session.sessionId, (await nowContext()).entryIds[0] ?? "");
    expect(last).toMatchObject({
      type: "compaction",
      details: { modifiedFiles: expect.arrayContaining(["src/file-1.ts"]) },
    });
    await store.close();
  });
});
