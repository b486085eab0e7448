import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { ReceivedEvent } from "../../src/entry-client.ts";
import type { Talker } from "./gateway-clients.ts";
import { answered, saying } from "./gateway-clients.ts";

/** Compares the events that clients received with the files. */

export interface Line {
  readonly type: string;
  readonly id: string;
  readonly customType?: string;
  readonly message?: { readonly role: string; readonly content: unknown };
}

/** Returns the entries in a session's file, in order. A line torn by a kill is not an entry. */
export function linesOf(root: string, name: string): Line[] {
  const file = readdirSync(root, { recursive: true, encoding: "utf8" }).find((path) =>
    path.endsWith(`/${name}.log.jsonl`),
  );
  if (file === undefined) return [];
  return readFileSync(join(root, file), "utf8").split("\n").flatMap(parsed).slice(1);
}

function parsed(line: string): Line[] {
  try {
    return [JSON.parse(line) as Line];
  } catch {
    return []; // torn, or after the last line
  }
}

/** Resolves when nothing is in progress and each client has received everything in its session. */
export function hasHeardAll(root: string, talker: Talker): boolean {
  const lines = linesOf(root, talker.name);
  const answer = lines.findLast(({ message }) => message?.role === "assistant")?.id ?? "";
  return talker.followed.at(-1)?.id === lines.at(-1)?.id && appendedTo(talker.events).includes(answer);
}

/** Checks all guarantees for a client once everything is idle. */
export function expectNothingLost(root: string, talker: Talker): void {
  expectComplete(linesOf(root, talker.name), talker);
}

/** Like `expectNothingLost`, with the entries of the client's session from any store. */
export function expectComplete(lines: readonly Line[], talker: Talker): void {
  const { name, acknowledged, followed, events } = talker;
  const said = lines.flatMap(({ message }) => (message?.role === "user" ? [message.content] : []));
  expect(said, `${name}: what was acknowledged, once each`).toEqual(
    acknowledged.map((number) => saying(name, number)),
  );
  const answers = lines.flatMap((line) => answered(name, line) ?? []);
  expect(answers, `${name}: one answer each`).toEqual(acknowledged);
  const spoken = lines.filter(({ message }) => message?.role === "assistant");
  expect(spoken, `${name}: no other answer`).toHaveLength(acknowledged.length);
  const ids = lines.map(({ id }) => id);
  expect(
    followed.map(({ id }) => id),
    `${name}: what follow gave`,
  ).toEqual(ids);
  expectOrdered(name, events);
  // State changes have their own events.
  const told = lines.filter(({ customType }) => customType !== "skein.meta").map(({ id }) => id);
  expectCovered(name, told, events);
}

/** Numbers increase. A gap covers the events before it but none that were delivered. */
export function expectOrdered(name: string, events: readonly ReceivedEvent[]): void {
  let last = 0;
  for (const each of events) {
    if (each.event === "gap") {
      expect(each.payload.after, `${name}: ${JSON.stringify(each)} behind ${last}`).toBeGreaterThanOrEqual(
        last,
      );
      // Another gateway has other numbers.
      if (each.payload.reason !== "restart")
        expect(each.payload.upTo).toBeGreaterThanOrEqual(each.payload.after);
      last = each.payload.upTo;
    } else {
      expect(each.seq, `${name}: ${each.event} behind ${last}`).toBeGreaterThan(last);
      last = each.seq;
    }
  }
}

/** Every entry has an event, once and in log order, or is covered by a gap. */
export function expectCovered(name: string, ids: readonly string[], events: readonly ReceivedEvent[]): void {
  const told = appendedTo(events);
  expect(new Set(told).size, `${name}: none told twice`).toBe(told.length);
  let next = 0;
  let hasGap = false;
  for (const each of events) {
    if (each.event === "gap") hasGap = true;
    if (each.event !== "entry.appended") continue;
    const at = ids.indexOf(each.payload.entry.id);
    expect(
      at,
      `${name}: ${each.payload.entry.id} is in the log, behind what was told`,
    ).toBeGreaterThanOrEqual(next);
    if (at > next) expect(hasGap, `${name}: entries ${next} to ${at - 1} are under a gap`).toBe(true);
    next = at + 1;
    hasGap = false;
  }
  if (next < ids.length) expect(hasGap, `${name}: entries from ${next} on are under a gap`).toBe(true);
}

function appendedTo(events: readonly ReceivedEvent[]): string[] {
  return events.flatMap((each) => (each.event === "entry.appended" ? [each.payload.entry.id] : []));
}
