import { describe, expect, test } from "vitest";
import type { MessageDraft } from "../core/seal.ts";
import type { Claim, Run } from "../runs/contract.ts";
import type { SessionRecord } from "../store/contract.ts";
import { missingText, writeArrivals } from "./run-input.ts";
import type { RunWriter } from "./run-writer.ts";

type Deps = Parameters<typeof writeArrivals>[0];

/** A session that stores messages by ID and a run ledger that can be interrupted. */
function ground() {
  const said = new Map<string, MessageDraft>();
  const merged: string[] = [];
  const cut = { behind: Number.POSITIVE_INFINITY };
  const writer = {
    say: async (message: MessageDraft, id: string) => {
      const wasThere = said.has(id);
      if (!wasThere) said.set(id, message);
      return { refused: null, wasThere };
    },
  } as unknown as RunWriter;
  const mergeInput = async (_: unknown, runId: string) => {
    if (merged.length >= cut.behind) throw new Error("killed");
    merged.push(runId);
  };
  const bring = (...ids: readonly string[]) =>
    writeArrivals({ runs: { mergeInput } } as unknown as Deps, {} as SessionRecord, writer, {
      held: { runId: "parent", fence: 1 },
      arrivals: ids.filter((id) => !merged.includes(id)).map(arrival),
      stillOpen: [],
      endedSilent: [],
    } as unknown as Claim);
  const words = () => [...said.values()].map((message) => (message.role === "user" ? message.content : ""));
  return { bring, words, merged, cut };
}

function arrival(id: string): Run {
  return { runId: id, entryId: `entry-${id}`, message: { role: "user", content: `word of ${id}` } } as Run;
}

describe("the input of a woken run", () => {
  test.each([0, 1, 2])(
    "occurs once if the process died after %i of it and more arrived since",
    async (behind) => {
      const { bring, words, merged, cut } = ground();
      cut.behind = behind;
      await expect(bring("a", "b", "c")).rejects.toThrow("killed");
      cut.behind = Number.POSITIVE_INFINITY;
      await bring("a", "b", "c", "late");
      expect(words()).toEqual(["word of a", "word of b", "word of c", "word of late"]);
      expect(merged.toSorted()).toEqual(["a", "b", "c", "late"]);
    },
  );

  test("is not repeated by a released message, because the run that took it was abandoned", async () => {
    const { bring, words, cut } = ground();
    cut.behind = 0;
    await expect(bring("a", "b")).rejects.toThrow("killed");
    cut.behind = Number.POSITIVE_INFINITY;
    await bring("b");
    expect(words()).toEqual(["word of a", "word of b"]);
  });
});

test.each<[readonly string[], readonly string[], string | null]>([
  [[], [], null],
  [["a", "b"], [], "[Skein] The wait has timed out. Still open: a, b."],
  [[], ["c"], "[Skein] Ended without a reply: c."],
  [["a"], ["c"], "[Skein] Ended without a reply: c. The wait has timed out. Still open: a."],
])("open %j, ended without a reply %j: a woken run gets %j", (open, ended, text) => {
  expect(missingText(open, ended)).toBe(text);
});
