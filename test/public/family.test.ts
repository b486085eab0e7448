import { afterEach, describe, expect, test } from "vitest";
import type { Result } from "../../src/entry-client.ts";
import type { Family } from "../support/family.ts";
import { call, gate, withParts } from "../support/family.ts";
import type { MountedOverHttp } from "../support/mounted-gateway.ts";
import { mountOverHttp } from "../support/mounted-gateway.ts";
import { closeAll, newFolder } from "../support/skein.ts";

type FamilyPayload = Result<"sessions.family">;

const a = "agent:main:session:a";
const b = "agent:main:session:b";
const c = "agent:main:session:c";
const secret = `ghp_${"a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"}`;

const opened: MountedOverHttp[] = [];
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
  await closeAll();
});

/** Session A spawns a child, which spawns another. A then writes to B, waiting for the reply, and to C. */
async function openFamily(): Promise<{ family: Family; gateway: MountedOverHttp }> {
  const dir = newFolder();
  const settings = {
    session: { agentToAgent: { maxPingPongTurns: 0 } },
    defaults: { subagents: { maxSpawnDepth: 3 } },
  };
  const family = await withParts(
    {
      Plan: [
        call("sessions_spawn", { task: "Work on it", background: false }),
        call("sessions_send", { sessionKey: b, message: "To B: how many?", timeoutSeconds: 600 }),
        call("sessions_send", { sessionKey: c, message: "To C: how much?" }),
        { text: "Planned." },
        { text: "Noted." },
      ],
      "Work on it": [
        call("sessions_spawn", { task: `Dig ${secret}` }),
        { text: "Wait." },
        { text: "Worked." },
      ],
      Dig: [{ text: `Dug ${secret}` }],
      "To B": [{ text: "Twelve." }],
      "To C": [{ text: "Plenty." }],
    },
    { dir, settings },
  );
  await family.make(b);
  await family.make(c);
  const turn = family.skein.session({ sessionKey: a }).send("Plan it");
  await turn.result;
  await family.settled(turn.runId);
  const gateway = await mountOverHttp(family.skein, dir);
  opened.push(gateway);
  return { family, gateway };
}

/** Session keys by the names used in this file. */
function namesIn({ nodes }: FamilyPayload): (key: string) => string {
  const [child, grandchild] = nodes.filter(({ parentKey }) => parentKey !== undefined);
  const fork = nodes.find(({ forkOf }) => forkOf !== undefined);
  const names = new Map([
    [a, "A"],
    [b, "B"],
    [c, "C"],
    [child?.key, "child"],
    [grandchild?.key, "grandchild"],
    [fork?.key, "fork"],
  ]);
  return (key) => names.get(key) ?? key;
}

describe("sessions.family", () => {
  test("[KIN1] returns children at every depth, forks and partners, whichever member is named", async () => {
    const { gateway } = await openFamily();
    const { key: forkKey } = await gateway.call("sessions.fork", { key: a });
    const found = await gateway.call("sessions.family", { key: a });
    const nameOf = namesIn(found);
    expect(found).toMatchObject({ rootKey: a, truncated: false });
    expect(found.nodes.map(({ key }) => nameOf(key))).toEqual(["A", "B", "C", "child", "grandchild", "fork"]);
    expect(found.nodes.flatMap(({ key, isPartner }) => (isPartner ? [nameOf(key)] : []))).toEqual(["B", "C"]);
    const spans = found.spans.map(({ key, state, preview }) => `${nameOf(key)} ${state}: ${preview}`);
    expect(spans.toSorted()).toEqual(
      [
        "A ok: Plan it",
        "A ok: Plenty.",
        "B ok: To B: how many?",
        "C ok: To C: how much?",
        `child ok: Dug ${secret}`,
        "child ok: Work on it",
        `grandchild ok: Dig ${secret}`,
      ].toSorted(),
    );
    const grandchild = found.nodes.find(({ key }) => nameOf(key) === "grandchild");
    for (const key of [forkKey, grandchild?.key ?? ""])
      expect(await gateway.call("sessions.family", { key })).toEqual(found);
    expect(await gateway.call("sessions.family", { key: b })).toMatchObject({
      rootKey: b,
      nodes: [{ key: b }, { key: a, isPartner: true }],
      edges: [{ kind: "send" }, { kind: "reply" }],
    });
  });

  test("[KIN2] each edge names an entry of the sessions at both of its ends", async () => {
    const { gateway } = await openFamily();
    const { entries } = await gateway.call("sessions.entries", { key: a });
    await gateway.call("sessions.fork", { key: a, entryId: entries[2]?.id ?? null });
    const found = await gateway.call("sessions.family", { key: a });
    const nameOf = namesIn(found);
    const edges = found.edges.map(
      ({ kind, fromKey, toKey, preview }) => `${kind} ${nameOf(fromKey)} → ${nameOf(toKey)}: ${preview}`,
    );
    // The grandchild can end before or after the child.
    expect(edges.toSorted()).toEqual(
      [
        "spawn A → child: Work on it",
        `spawn child → grandchild: Dig ${secret}`,
        "reply child → A: Wait.",
        `announce grandchild → child: Dug ${secret}`,
        "send A → B: To B: how many?",
        "reply B → A: Twelve.",
        "send A → C: To C: how much?",
        "reply C → A: Plenty.",
        "fork A → fork: ",
      ].toSorted(),
    );
    for (const { kind, fromKey, fromEntryId, toKey, toEntryId } of found.edges) {
      for (const [key, id] of [
        [fromKey, fromEntryId],
        [toKey, toEntryId],
      ] as const) {
        const read = await gateway.call("sessions.entries", { key });
        expect(
          read.entries.map((entry) => entry.id),
          `${kind} ${nameOf(key)}`,
        ).toContain(id);
      }
    }
    for (const { kind, fromKey, toKey, runId, at } of found.edges) {
      const name = `${kind} ${nameOf(fromKey)} → ${nameOf(toKey)}`;
      if (runId === undefined) {
        const fork = found.nodes.find(({ key }) => key === toKey);
        expect([name, at]).toEqual(["fork A → fork", fork?.createdAt]);
        continue;
      }
      const { run } = await gateway.call("runs.get", { runId });
      // A reply to a waiting call names the run that replied, and every other edge the run that it started.
      const isReply = run.sessionKey === fromKey;
      expect([name, run.sessionKey, at]).toEqual([
        name,
        isReply ? fromKey : toKey,
        isReply ? run.endedAt : run.createdAt,
      ]);
      expect([name, isReply && kind !== "reply"]).toEqual([name, false]);
    }
  });

  test("[KIN3] a deleted session appears in no node, span or edge", async () => {
    const { gateway } = await openFamily();
    await gateway.call("sessions.delete", { key: c });
    const text = JSON.stringify(await gateway.call("sessions.family", { key: a }));
    expect(text).not.toContain(c);
    expect(text).not.toContain("Plenty.");
    expect(text).toContain(b);
  });

  test("a family with more than 200 members is truncated, and keeps the named one", async () => {
    const dir = newFolder();
    const family = await withParts({}, { dir });
    const { sessions } = family.skein.store;
    await family.make(a);
    for (let index = 0; index < 205; index++) {
      const key = `agent:main:session:child-${index}`;
      await sessions.create({ agentId: "main" }, { key, cwd: dir, meta: { spawnedBy: a } });
    }
    const gateway = await mountOverHttp(family.skein, dir);
    opened.push(gateway);
    const indexing = async () => (await gateway.call("sessions.list", { limit: 1 })).indexing;
    await expect.poll(indexing).toBeUndefined();
    for (const key of [a, "agent:main:session:child-0"]) {
      const { rootKey, nodes, truncated } = await gateway.call("sessions.family", { key });
      expect([rootKey, nodes.length, truncated]).toEqual([a, 200, true]);
      expect(nodes.map((node) => node.key)).toContain(key);
    }
  });

  test("[WLK7] masks secrets in previews and names for a token without the scope `admin`", async () => {
    const { gateway } = await openFamily();
    const { token } = await gateway.call("tokens.create", { scopes: ["read"] });
    const answer = await fetch(`${gateway.url}/rpc/sessions.family`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify({ key: a }),
    });
    const read = await answer.text();
    expect(JSON.stringify(await gateway.call("sessions.family", { key: a }))).toContain(secret);
    expect(read).not.toContain(secret);
    expect(read).toContain("Dig ");
  });

  test("[KIN4] `run.queued` with `startedBy` announces a member before the family shows it", async () => {
    const { tool, open } = gate();
    const dir = newFolder();
    const family = await withParts(
      {
        Plan: [call("sessions_spawn", { task: "Work", background: false }), { text: "Planned." }],
        Work: [call("gate"), { text: "Worked." }],
      },
      { dir, agent: { tools: [tool] } },
    );
    const gateway = await mountOverHttp(family.skein, dir);
    opened.push(gateway);
    const queued = family.until("run.queued", ({ startedBy }) => startedBy !== undefined);
    const turn = family.skein.session({ sessionKey: a }).send("Plan it");
    const { sessionKey } = await queued;
    const { nodes, edges } = await gateway.call("sessions.family", { key: a });
    expect(nodes.map(({ key }) => key)).toEqual([a, sessionKey]);
    expect(edges).toMatchObject([{ kind: "spawn", fromKey: a, toKey: sessionKey }]);
    open();
    await turn.result;
  });
});
