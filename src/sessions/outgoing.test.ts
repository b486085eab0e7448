import { expect, test } from "vitest";
import { endedRun } from "../../test/support/sequels.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import { Outgoing } from "./outgoing.ts";

test("[TLK3] messages between sessions are sent to no channel", async () => {
  const outgoing = new Outgoing(new Map(), { default: "allow", rules: [] });
  const init = { key: "agent:main:main", cwd: "/" };
  const session = await createMemoryStore().sessions.create({ agentId: "main" }, init);
  const run = endedRun({ deliverTo: { channel: "desk" } });
  for (const reply of ["ANNOUNCE_SKIP", "REPLY_SKIP\n", " "])
    expect(outgoing.of(session, run, reply)).toEqual([]);
  expect(outgoing.of(session, run, "Not ANNOUNCE_SKIP")).toMatchObject([{ text: "Not ANNOUNCE_SKIP" }]);
});
