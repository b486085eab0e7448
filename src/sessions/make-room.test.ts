import { describe, expect, test } from "vitest";
import { textOfTokens } from "../../test/support/conversation.ts";
import { diligent } from "../../test/support/long-story.ts";
import { assistantMessage } from "../../test/support/session-text.ts";
import type { EntryDraft } from "../core/seal.ts";
import type { Store } from "../store/contract.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import { shouldCompact } from "../transcript/compaction/limits.ts";
import { messageTokens } from "../transcript/compaction/plan-cut.ts";
import type { Summarize } from "../transcript/compaction/summarize-piece.ts";
import { compactSession } from "./compact.ts";
import type { RecoveryMeasures } from "./make-room.ts";
import { ContextRecovery } from "./make-room.ts";

const contextWindow = 10_000;
const said = (text: string): EntryDraft => ({ type: "message", message: { role: "user", content: text } });
const answered = (text: string): EntryDraft => ({ type: "message", message: assistantMessage(text) });

async function session(turns: number, tokens: number) {
  const store = createMemoryStore();
  const record = await store.sessions.create({}, { key: "agent:main:main", sessionId: "s", cwd: "/w" });
  const drafts = Array.from({ length: turns }, () => [said(textOfTokens(tokens)), answered("yes")]).flat();
  await store.sessions.append(
    {},
    "s",
    drafts.map((draft) => ({ draft })),
  );
  return { store, record };
}

async function tokensIn(store: Store): Promise<number> {
  const context = await store.sessions.context({}, "s");
  return (context?.messages ?? []).reduce((sum, message) => sum + messageTokens(message), 0);
}

async function entriesOf(store: Store): Promise<readonly string[]> {
  const page = await store.sessions.page({}, "s", { along: "all", limit: 1000 });
  return (page?.entries ?? []).filter(({ type }) => type === "message").map(({ id }) => id);
}

/** A run that can compact and whose other recovery steps report whether they helped. */
function recovery(
  { store, record }: Awaited<ReturnType<typeof session>>,
  summarize: Summarize,
  other: { oversized?: boolean; truncate?: boolean; prune?: boolean; signal?: AbortSignal } = {},
) {
  const taken: string[] = [];
  const take = async (name: string, isSmaller = false) => {
    taken.push(name);
    return isSmaller;
  };
  const measures: RecoveryMeasures = {
    hasOversizedResults: () => other.oversized ?? false,
    truncateOversized: () => take("truncate_oversized"),
    compact: async (compactions) => {
      const options = {
        summarize,
        contextWindow,
        compactions,
        trigger: "overflow",
        mode: "safeguard",
        ...(other.signal === undefined ? {} : { signal: other.signal }),
      } as const;
      const outcome = await compactSession({ store }, {}, record, options);
      taken.push(outcome.done ? "compact" : `compact: ${outcome.reason}`);
      return outcome.done;
    },
    truncate: () => take("truncate", other.truncate),
    prune: () => take("prune", other.prune),
  };
  return { taken, run: new ContextRecovery(measures) };
}

describe("a context that does not fit", () => {
  test("is compacted, and nothing else happens if that helps", async () => {
    const held = await session(12, 1000);
    const { taken, run } = recovery(held, diligent().summarize);
    expect(await run.makeRoom()).toBe("compact");
    expect(taken).toEqual(["compact"]);
    expect(shouldCompact({ tokens: await tokensIn(held.store), contextWindow })).toBe(false);
  });

  test.each<[string, Summarize, string]>([
    ["fails", () => Promise.reject(new Error("no")), "failed"],
    ["answers with nothing", async () => "", "empty"],
    ["answers garbage", async () => "blah", "poor"],
    ["answers too much", async () => "x".repeat(100_000), "too_long"],
    ["hangs until the signal", () => new Promise(() => undefined), "timed_out"],
  ])(
    "[CMP11] if the summarizer %s, the next measure is taken and nothing is lost",
    async (_, summarize, reason) => {
      const held = await session(12, 1000);
      const before = await entriesOf(held.store);
      const { taken, run } = recovery(held, summarize, {
        oversized: true,
        truncate: true,
        ...(reason === "timed_out" ? { signal: AbortSignal.timeout(1) } : {}),
      });
      expect(await run.makeRoom()).toBe("truncate");
      expect(taken).toEqual(["truncate_oversized", `compact: ${reason}`, "truncate"]);
      expect(await entriesOf(held.store)).toEqual(before);
      expect((await held.store.sessions.context({}, "s"))?.entryIds).toEqual(before);
    },
  );

  test("[CMP15] gives up after a limited number of attempts if the minimum exceeds the window", async () => {
    const held = await session(12, 1000);
    const before = await entriesOf(held.store);
    const { requests, summarize } = diligent();
    const { taken, run } = recovery(held, summarize, { truncate: true, prune: true });
    // The system prompt and tools alone exceed the window, so the provider rejects every request.
    for (let tries = 0; (await run.makeRoom()) !== "give_up"; tries++) expect(tries).toBeLessThan(20);
    expect(taken.length).toBeLessThanOrEqual(6);
    expect(taken.filter((name) => name === "compact").length).toBeLessThanOrEqual(3);
    expect(taken.slice(-2)).toEqual(["truncate", "prune"]);
    expect(requests.length).toBeLessThanOrEqual(12);
    expect(await entriesOf(held.store)).toEqual(before);
    expect(await run.makeRoom()).toBe("give_up");
    expect(taken.slice(-2)).toEqual(["truncate", "prune"]);
  });

  test("[CMP15] one turn larger than the window is not summarized repeatedly", async () => {
    const held = await session(1, 20_000);
    const { requests, summarize } = diligent();
    const { taken, run } = recovery(held, summarize);
    expect(await run.makeRoom()).toBe("give_up");
    expect(taken).toEqual(["compact: one_turn", "truncate", "prune"]);
    expect(requests).toEqual([]);
  });

  test("[CMP15] each of at most three compactions of a run shrinks the context", async () => {
    const held = await session(40, 1000);
    const { run, taken } = recovery(held, diligent().summarize);
    const sizes = [await tokensIn(held.store)];
    for (let times = 0; times < 3; times++) {
      await held.store.sessions.append({}, "s", [{ draft: said("next") }, { draft: answered("ok") }]);
      expect(await run.makeRoom()).toBe("compact");
      sizes.push(await tokensIn(held.store));
    }
    expect(sizes).toEqual(sizes.toSorted((a, b) => b - a));
    expect(await run.makeRoom()).toBe("give_up");
    expect(taken).toEqual(["compact", "compact", "compact", "truncate", "prune"]);
  });
});
