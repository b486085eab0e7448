// Compares the events that a gateway client received with the files.

import { globSync } from "node:fs";
import { basename, join } from "node:path";
import { expect } from "vitest";
import type { ReceivedEvent } from "../../src/entry-client.ts";
import type { GatewayWorld } from "./acp-gateway-world.ts";
import { expectCovered, expectOrdered, linesOf } from "./gateway-clients-count.ts";

/**
 * Checks that numbers increase and that every entry of every session is reported once or covered by a gap. A follower
 * receives each entry once, in order.
 */
export function expectAllTold(world: GatewayWorld): void {
  // A reader that has failed also lacks entries, so its error is reported first.
  expect(world.failures).toEqual([]);
  expectOrdered("the client", world.events);
  const logs = globSync(join(world.root, "**/agents/*/sessions/*.log.jsonl"));
  expect(logs.length).toBeGreaterThan(0);
  for (const log of logs) {
    const id = basename(log, ".log.jsonl");
    // State changes have their own events.
    const lines = linesOf(world.root, id).filter(({ customType }) => customType !== "skein.meta");
    const ids = lines.map((line) => line.id);
    const events = world.events.filter((each) => isOf(id, each));
    expectCovered(id, ids, events);
  }
  for (const [key, entries] of world.followed) {
    const lines = linesOf(world.root, key.slice(key.lastIndexOf(":") + 1));
    expect(
      entries.map(({ id }) => id),
      key,
    ).toEqual(lines.map(({ id }) => id));
  }
}

function isOf(sessionId: string, each: ReceivedEvent): boolean {
  if (each.event === "gap") return true;
  return each.event === "entry.appended" && each.payload.sessionId === sessionId;
}
