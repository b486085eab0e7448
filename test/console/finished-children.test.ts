import { describe, expect, test } from "vitest";
import { findHosts, foldNested, nest } from "../../console/src/live/finished-children.ts";
import type { SessionRow } from "../../console/src/live/session-row.ts";
import { idOf } from "../../console/src/live/session-row.ts";

const row = (key: string, spawnedBy?: string, state: SessionRow["state"] = "done", userId?: string) =>
  ({ key, spawnedBy, state, userId }) as SessionRow;

/** The keys with the keys of their hosts. */
function hostsOf(rows: readonly SessionRow[]): Record<string, string> {
  const hosts = findHosts(rows, ({ state }) => state === "done");
  return Object.fromEntries([...hosts].map((pair) => pair.map((id) => id.replace("\n", ""))));
}

describe("finished sub-agents in a list", () => {
  test("are nested under the closest session that is not nested itself", () => {
    const rows = [row("grandchild", "child"), row("child", "main"), row("main"), row("other")];
    expect(hostsOf(rows)).toEqual({ grandchild: "main", child: "main" });
    const working = [row("grandchild", "child"), row("child", "main", "working"), row("main")];
    expect(hostsOf(working)).toEqual({ grandchild: "child" });
  });

  test("are listed on their own without their parent, and under no session of another user", () => {
    expect(hostsOf([row("child", "main")])).toEqual({});
    expect(hostsOf([row("child", "main", "done", "ann"), row("main", undefined, "done", "bob")])).toEqual({});
  });

  test("never disappear because of a circle", () => {
    const rows = [row("a", "b"), row("b", "c"), row("c", "a"), row("self", "self")];
    const hosts = findHosts(rows, () => true);
    const items = rows.map((each) => ({ id: idOf(each), host: hosts.get(idOf(each)) ?? null }));
    expect(nest(items)).toHaveLength(4);
  });

  test("follow their host as one fold, which can be opened, and a kept one stays visible", () => {
    const items = nest([
      { id: "first", host: "main" },
      { id: "main", host: null },
      { id: "other", host: null },
      { id: "second", host: "main" },
    ]);
    const ids = (opened: string[], kept: string[]) =>
      foldNested(items, new Set(opened), new Set(kept)).map(({ id }) => id);
    expect(ids([], [])).toEqual(["main", "finished main", "other"]);
    expect(ids([], ["second"])).toEqual(["main", "finished main", "second", "other"]);
    expect(ids(["main"], [])).toEqual(["main", "finished main", "first", "second", "other"]);
  });
});
