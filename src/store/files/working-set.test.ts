import fc from "fast-check";
import { expect, test } from "vitest";
import type { Entry } from "../../core/entries.ts";
import { parseSession } from "../../core/parse-session.ts";
import { SessionTree } from "../../core/tree.ts";
import { cutWorkingSet } from "./working-set.ts";

const step = fc.record({
  do: fc.constantFrom("say", "say", "name", "no name", "label", "no label", "compact", "leaf"),
  /** The entry that this one is attached to or refers to, usually the last one. */
  on: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(8)),
  at: fc.nat(4),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A log whose entries are attached to arbitrary entries, as in logs from other programs. */
function treeOf(steps: readonly Step[]): SessionTree {
  const lines: object[] = [{ type: "session", version: 3, id: "s", timestamp: "", cwd: "/" }];
  const entries: { id: string; parentId: string | null }[] = [];
  for (const [number, { do: act, on, at }] of steps.entries()) {
    const parentId = entries.at(-1 - on)?.id ?? entries.at(-1)?.id ?? null;
    const base = { id: `e${number}`, parentId, timestamp: "2026-01-01T00:00:00.000Z" };
    const targetId = entries[at]?.id ?? base.id;
    const path = new Set<string>();
    for (let id = parentId; id !== null; id = entries.find((each) => each.id === id)?.parentId ?? null)
      path.add(id);
    const kept = [...path][at] ?? base.id;
    lines.push(
      {
        say: { type: "message", ...base, message: { role: "user", content: `text ${at}` } },
        name: { type: "session_info", ...base, name: `N${at}` },
        "no name": { type: "session_info", ...base },
        label: { type: "label", ...base, targetId, label: `L${number}` },
        "no label": { type: "label", ...base, targetId },
        compact: { type: "compaction", ...base, summary: "S", firstKeptEntryId: kept, tokensBefore: 1 },
        leaf: { type: "leaf", ...base, targetId },
      }[act] ?? {},
    );
    entries.push(base);
  }
  return SessionTree.from(parseSession(lines.map((line) => `${JSON.stringify(line)}\n`).join("")));
}

function seen(tree: SessionTree): unknown {
  const { messages, model, thinkingLevel } = tree.context();
  const { name, tipId, leafId } = tree;
  const shown = tree
    .path()
    .slice(-1)
    .map((entry: Entry) => entry.id);
  return {
    name,
    tipId,
    leafId,
    labels: new Map([...tree.labels].toSorted()),
    messages,
    model,
    thinkingLevel,
    shown,
  };
}

test("[FS5] a shortened working set has the name, labels, leaf and context of the log", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 20 }), (steps) => {
      const tree = treeOf(steps);
      fc.pre(tree.tipId !== null);
      const cut = cutWorkingSet(tree, 1, { meta: {}, version: 1, key: null });
      expect(seen(SessionTree.from(parseSession(cut)))).toEqual(seen(tree));
    }),
  );
});
