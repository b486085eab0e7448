import { afterAll, describe, expect, test } from "vitest";
import { answered, base, removeRoots, roots, said, scope, stores } from "../../test/support/compactable.ts";
import { textOfTokens } from "../../test/support/conversation.ts";
import { diligent, goodNotes } from "../../test/support/long-story.ts";
import { assistantMessage } from "../../test/support/session-text.ts";
import { parseSession } from "../core/parse-session.ts";
import type { EntryDraft } from "../core/seal.ts";
import { SessionTree } from "../core/tree.ts";
import type { SessionRecord, Store } from "../store/contract.ts";
import { openFilesStore } from "../store/files/store.ts";
import type { Summarize } from "../transcript/compaction/summarize-piece.ts";
import { compactSession } from "./compact.ts";
import { HookRegistry } from "./hooks.ts";

afterAll(removeRoots);

describe.each(Object.keys(stores))("a session larger than one read, in %s", (kind) => {
  // A budget of 64,000 bytes, which keeps about 3,200 tokens.
  const window = 8000;
  const count = 400;
  const marked = Array.from({ length: count }, (_, index) => [
    { id: `u${index}`, draft: said(`mark-${index}. ${textOfTokens(60)}`) },
    { id: `a${index}`, draft: answered(`tail-${index}. ${textOfTokens(60)}`) },
  ]).flat();
  const marks = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) => [
      `mark-${from + index}.`,
      `tail-${from + index}.`,
    ]).flat();

  async function opened() {
    const store = await (stores[kind] as () => Promise<Store>)();
    const session = await store.sessions.create(scope, {
      key: "agent:main:session:s",
      sessionId: "s",
      cwd: "/w",
    });
    return { store, session };
  }
  /** Opens the session as another process would. A long log is opened from its tail. */
  const reopened = async (store: Store): Promise<Store> => {
    if (kind === "memory") return store;
    await store.close();
    return openFilesStore({
      root: roots.at(-1) ?? "",
      durability: "os",
      index: "in place",
      tailBytes: 20_000,
    });
  };
  const compactIt = (store: Store, session: SessionRecord, summarize: Summarize) =>
    compactSession({ store }, scope, session, { ...base, contextWindow: window, summarize });

  test("[CMP19] reaches the summarizer completely, the newest part first", async () => {
    const { store: first, session } = await opened();
    await first.sessions.append(scope, "s", marked);
    const store = await reopened(first);
    const { requests, summarize } = diligent();
    const outcome = await compactIt(store, session, summarize);
    if (!outcome.done) throw new Error(outcome.note);
    expect(outcome.chunks).toBeGreaterThan(10);
    expect(outcome.tokensBefore).toBeGreaterThan(count * 100);
    const prompts = requests.map(({ prompt }) => prompt);
    const kept = Number(outcome.firstKeptEntryId.slice(1));
    const all = prompts.join("\n");
    expect(marks(0, kept).filter((mark) => !all.includes(mark))).toEqual([]);
    expect(prompts.at(-1)).toContain("mark-0.");
    expect(prompts[0]).toContain(`tail-${kept - 1}.`);
    const context = await store.sessions.context(scope, "s");
    expect(context?.entryIds).toEqual([outcome.entryId, ...marked.map(({ id }) => id).slice(2 * kept)]);
    await store.close();
  });

  test("[CMP19] ends where the kept part of the previous compaction starts, and includes the previous summary", async () => {
    const { store: first, session } = await opened();
    await first.sessions.append(scope, "s", marked.slice(0, 100));
    const draft = {
      type: "compaction",
      summary: "The very first.",
      firstKeptEntryId: "u30",
      tokensBefore: 1,
    } as const;
    await first.sessions.append(scope, "s", [{ id: "c0", draft }, ...marked.slice(100)]);
    const store = await reopened(first);
    const { requests, summarize } = diligent();
    const outcome = await compactIt(store, session, summarize);
    if (!outcome.done) throw new Error(outcome.note);
    const all = requests.map(({ prompt }) => prompt).join("\n");
    const kept = Number(outcome.firstKeptEntryId.slice(1));
    expect(marks(30, kept).filter((mark) => !all.includes(mark))).toEqual([]);
    expect(marks(0, 30).filter((mark) => all.includes(mark))).toEqual([]);
    expect(requests.at(-1)?.prompt).toContain("The very first.");
    await store.close();
  });

  test("[CMP19] content removed from the context by an edit is removed from the older part too", async () => {
    const { store } = await opened();
    await store.sessions.append(scope, "s", marked);
    const path = (await store.sessions.page(scope, "s", { along: "branch", limit: 1 }))?.leafId ?? null;
    const edit = (id: string, parentId: string | null, targetId: string, replacement: unknown) => ({
      type: "context_edit",
      id,
      parentId,
      timestamp: "2026-01-01T00:00:00.000Z",
      targetId,
      replacement,
    });
    const lines = [
      ...marked.map(({ id, draft }, index) => ({
        ...draft,
        id,
        parentId: marked[index - 1]?.id ?? null,
        timestamp: "2026-01-01T00:00:00.000Z",
      })),
      edit("x1", path, "u3", null),
      edit("x2", "x1", "u4", { content: "other words" }),
    ];
    const text = [{ type: "session", version: 3, id: "t", cwd: "/w" }, ...lines]
      .map((line) => JSON.stringify(line))
      .join("\n");
    const tree = SessionTree.from(parseSession(`${text}\n`));
    const init = { key: "agent:main:session:t", sessionId: "t", cwd: "/w" };
    const session = await store.sessions.adopt(scope, init, tree);
    await store.sessions.append(scope, "t", [{ draft: said("go on") }, { draft: answered("yes") }]);
    const { requests, summarize } = diligent();
    const outcome = await compactIt(store, session, summarize);
    expect(outcome).toMatchObject({ done: true });
    const all = requests.map(({ prompt }) => prompt).join("\n");
    expect(["mark-3.", "mark-4."].filter((mark) => all.includes(mark))).toEqual([]);
    for (const expected of ["mark-2.", "mark-5.", "[User]: other words"]) expect(all).toContain(expected);
    await store.close();
  });

  test.each<[string, string, (store: Store) => Promise<unknown>]>([
    [
      "a redaction of entries that were read",
      "mark-0.",
      (store) => store.sessions.redact(scope, "s", ["u100"]),
    ],
    ["a move after everything was read", "mark-0.", (store) => store.sessions.branch(scope, "s", "u5")],
    ["a move while it is read", "mark-340.", (store) => store.sessions.branch(scope, "s", "u5")],
  ])("[CMP17] %s is a conflict", async (_, at, disturb) => {
    const { store: first, session } = await opened();
    await first.sessions.append(scope, "s", marked);
    const store = await reopened(first);
    const outcome = await compactIt(store, session, async ({ prompt }) => {
      if (prompt.includes(at)) await disturb(store);
      return goodNotes(prompt);
    });
    expect(outcome).toMatchObject({ done: false, reason: "conflict" });
    await store.close();
  });

  test("[CMP16] the current request is the newest, even if it is beyond one read", async () => {
    const { store: first, session } = await opened();
    let calls = 0;
    const step = (): EntryDraft[] => {
      const id = `c${calls++}`;
      const call = { type: "toolCall" as const, id, name: "look", arguments: {} };
      const content = [{ type: "text" as const, text: textOfTokens(500) }];
      return [
        { type: "message", message: { ...assistantMessage(""), content: [call], stopReason: "toolUse" } },
        {
          type: "message",
          message: { role: "toolResult", toolCallId: id, toolName: "look", content, isError: false },
        },
      ];
    };
    const add = (store: Store, ...drafts: EntryDraft[]) =>
      store.sessions.append(
        scope,
        "s",
        drafts.map((draft) => ({ draft })),
      );
    const steps = (count: number) => Array.from({ length: count }, step).flat();
    await add(first, said("OLD-REQUEST"), ...steps(20));
    const one = await compactIt(first, session, diligent().summarize);
    expect(one).toMatchObject({ summary: expect.stringMatching(/under way\n> OLD-REQUEST$/) });
    const note: EntryDraft = { type: "custom_message", customType: "n", content: "NOTE", display: true };
    await add(first, answered("done"), said("NEW-REQUEST"), ...steps(60), note, ...steps(60));
    const store = await reopened(first);
    const two = await compactIt(store, session, diligent().summarize);
    expect(two).toMatchObject({ summary: expect.stringMatching(/under way\n> NEW-REQUEST$/) });
    expect(JSON.stringify(two)).not.toContain("OLD-REQUEST");
    await add(store, answered("done"), said("LAST-REQUEST"), ...steps(80));
    const hooks = new HookRegistry();
    hooks.on("before_compaction", ({ isCut }) => ({ summary: `By a hook, cut: ${isCut}.` }));
    const options = { ...base, contextWindow: window, summarize: diligent().summarize };
    expect(await compactSession({ store, hooks }, scope, session, options)).toMatchObject({
      summary: "By a hook, cut: true.\n\n## The request under way\n> LAST-REQUEST",
    });
    await store.close();
  });

  test("[CMP19] reads more if there is no place to cut", async () => {
    const { store, session } = await opened();
    const call = { type: "toolCall" as const, id: "c", name: "look", arguments: {} };
    await store.sessions.append(scope, "s", [
      ...marked.slice(0, 200),
      { id: "ask", draft: said("look") },
      {
        id: "call",
        draft: {
          type: "message",
          message: { ...assistantMessage(""), content: [call], stopReason: "toolUse" },
        },
      },
      {
        id: "found",
        draft: {
          type: "message",
          message: {
            role: "toolResult",
            toolCallId: "c",
            toolName: "look",
            content: [],
            details: { raw: "x".repeat(100_000) },
            isError: false,
          },
        },
      },
    ]);
    const outcome = await compactIt(store, session, diligent().summarize);
    expect(outcome).toMatchObject({ done: true });
    const context = await store.sessions.context(scope, "s");
    expect(context?.entryIds.slice(-3)).toEqual(["ask", "call", "found"]);
    await store.close();
  });
});
