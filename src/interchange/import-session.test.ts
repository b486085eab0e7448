import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sessionText, userLine } from "../../test/support/session-text.ts";
import { atOnce } from "../core/slices.ts";
import { importSession as importing } from "./import-session.ts";

const importSession = (...given: Parameters<typeof importing>) => atOnce(importing(...given));

describe("sessions of pi, of OpenClaw and our own", () => {
  test("[INT3] are read as they are", () => {
    const text = sessionText(userLine("a", null), userLine("b", "a"));
    const imported = importSession(text);
    expect(imported).toMatchObject({ source: "pi", sessionId: "s", cwd: "/w", name: null, notKept: [] });
    expect(imported?.startedAt).toBe(Date.UTC(2026, 0, 1));
    expect(imported?.tree.encode()).toBe(text);
  });

  test("[INT6] what is damaged is counted", () => {
    const imported = importSession(
      sessionText(
        userLine("a", null),
        "{torn",
        userLine("b", "a"),
        '{"type":"label","id":"l","parentId":"b","timestamp":"t"}',
      ),
    );
    expect(imported?.notKept).toEqual([
      { what: "A damaged line was passed over.", count: 1, example: "line 3" },
      {
        what: "An entry of a wrong shape keeps its place, but no model is shown it.",
        count: 1,
        example: "line 5",
      },
    ]);
  });

  test("[INT6] a lost header is told of, and the file's name stands in", () => {
    const imported = importSession(JSON.stringify(userLine("a", null)), { file: "trip.jsonl" });
    expect(imported).toMatchObject({ sessionId: "trip", cwd: "" });
    expect(imported?.notKept).toEqual([
      { what: "The header is lost: the working directory is not known.", count: 1 },
    ]);
  });

  test("[INT2] a name that cannot be a session id of ours gets the same stand-in each time", () => {
    const file = JSON.stringify(userLine("a", null));
    const id = importSession(file, { file: "../a b.jsonl" })?.tree.header.id;
    expect(id).toMatch(/^imported-[0-9a-f]{32}$/);
    expect(importSession(file, { file: "../a b.jsonl" })?.tree.header.id).toBe(id);
  });
});

test("[INT7] [INT1] whatever the bytes, nothing is thrown", () => {
  expect(importSession("Dear diary")).toBeNull();
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      expect(importSession(bytes)).toBeNull();
    }),
  );
});

test("[INT6] an example is one harmless line, and not a long one", () => {
  const line = { type: "progress", uuid: `\u001b[2J\n${"x".repeat(1000)}`, parentUuid: null };
  const [first] = importSession(JSON.stringify(line))?.notKept ?? [];
  expect(first?.example).toMatch(/^\\u001b\[2J\\u000ax+$/);
  expect(first?.example?.length).toBe(300);
});

test("[INT7] nested as deep as it likes", () => {
  const deep = `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`;
  const line = `{"parentUuid":null,"type":"assistant","uuid":"u","message":{"content":[{"type":"tool_use","id":"t","name":"x","input":${deep}}]}}`;
  const imported = importSession(
    `${line}\n{"parentUuid":"u","type":"user","uuid":"v","message":{"content":"hi"}}`,
  );
  const sizes = [...(imported?.tree.entries() ?? [])].length;
  const passedOver = imported?.notKept.some(({ what }) => what.includes("cannot be written")) ?? false;
  expect(sizes).toBe(passedOver ? 1 : 2);
});
