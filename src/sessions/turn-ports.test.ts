import { describe, expect, test } from "vitest";
import type { Entry } from "../core/entries.ts";
import { yieldedFor } from "./turn-ports.ts";

const entry = (message: object): Entry => ({ type: "message", id: "e", message }) as Entry;
const answer = entry({ role: "assistant", content: [] });
const result = (text: string, also: object = {}) =>
  entry({ role: "toolResult", toolName: "sessions_yield", content: [{ type: "text", text }], ...also });
const details = (waitingFor: unknown) => ({ details: { status: "yielded", waitingFor } });

describe("what a yield waits for", () => {
  test.each([
    ["by its details", [answer, result("z", details(["r1", "r2"]))], { waitFor: ["r1", "r2"] }],
    ["by its text", [answer, result('{"status":"yielded","waitingFor":["r1"]}')], { waitFor: ["r1"] }],
    [
      "all of several",
      [answer, result("z", details(["r1"])), result("z", details(["r1", "r2"]))],
      { waitFor: ["r1", "r2"] },
    ],
    ["everything, if one names no runs", [answer, result("z", details(["r1"])), result("z")], {}],
    ["everything, if it is not a list of IDs", [answer, result("z", details([1]))], {}],
    [
      "not what another or a failed tool says",
      [answer, result("z", { toolName: "x", ...details(["r1"]) }), result("z", { isError: true })],
      {},
    ],
    ["not what an earlier one waited for", [result("z", details(["r1"])), answer], {}],
  ])("[LIB12] %s", (_, tail, expected) => {
    expect(yieldedFor(tail)).toEqual(expected);
  });
});
