import { describe, expect, test } from "vitest";
import type { SessionMeta } from "./contract.ts";
import { claimsForDisplay, harmlessMeta, readMeta } from "./session-meta.ts";

const lineage = {
  spawnedBy: "agent:main:main",
  spawnDepth: 2,
  role: "leaf",
  toolLayers: [{ of: "x", deny: ["y"] }],
};

describe("metadata in a file", () => {
  test("[ADM2] sandboxed and lineage take effect, and a title is shown", () => {
    const claimed = {
      ...lineage,
      sandboxed: true,
      label: "l",
      model: "p/m",
      ownThread: true,
      free: 1,
    } as SessionMeta;
    expect(harmlessMeta(claimed, { lineage: true })).toEqual({
      ...lineage,
      sandboxed: true,
      displayName: "l",
    });
    expect(harmlessMeta(claimed)).toEqual({ sandboxed: true, displayName: "l" });
  });

  test.each([
    { spawnedBy: "not a key" },
    { spawnedBy: 3 },
    { sandboxed: "yes" },
    { displayName: "" },
    { displayName: { toString: "x" } },
    { label: "x".repeat(600) },
    { displayName: " spaced " },
    { spawnDepth: -1, spawnedBy: null },
  ])("[ADM2] a field of a wrong type is ignored: %j", (claimed) => {
    expect(harmlessMeta(claimed as unknown as SessionMeta, { lineage: true })).toEqual({});
  });

  test("[ADM11] kept fields have the type that the code expects", () => {
    const claimed = { delivery: { channel: 3 }, sendPolicy: "maybe", model: [], archived: 1, free: { a: 1 } };
    expect(readMeta(claimed as unknown as SessionMeta)).toEqual({ free: { a: 1 } });
    const delivery = { channel: "desk", to: "17", other: "x" };
    expect(readMeta({ delivery, importedFrom: { source: "pi" } })).toEqual({
      delivery: { channel: "desk", to: "17" },
    });
  });

  test("[ADM3] large values are not displayed, and small ones are", () => {
    expect(claimsForDisplay({ a: 1, big: "x".repeat(20_000), importedFrom: 3, cwd: "" })).toEqual({ a: 1 });
  });
});
