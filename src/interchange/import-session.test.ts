import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sessionText, userLine } from "../../test/support/session-text.ts";
import { atOnce } from "../core/slices.ts";
import { importSession as importing, recognizeSource } from "./import-session.ts";

const importSession = (...given: Parameters<typeof importing>) => atOnce(importing(...given));

const longText = "x".repeat(400_000);

describe("recognizeSource", () => {
  const rows: [string | null, string][] = [
    ["skein", '{"type":"session","version":3,"id":"a","skein":{"key":"agent:main:main"}}\n'],
    ["pi", '{"type":"session","version":3,"id":"a","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}\n'],
    ["pi", '{"type":"session","id":"version one"}\n'],
    [
      "pi",
      '{"type":"title","title":"of another program"}\nnot json\n{"type":"session","version":3,"id":"a"}\n',
    ],
    ["pi", '{"type":"message","id":"a1","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z"}\n'],
    ["pi", `{"type":"session","version":3,"id":"${longText}`],
    [
      "claude-code",
      '{"parentUuid":null,"type":"user","uuid":"u1","message":{"role":"user","content":"hi"}}\n',
    ],
    ["claude-code", '{"type":"summary","summary":"A title","leafUuid":"u1"}\n'],
    ["claude-code", '{"type":"file-history-snapshot","messageId":"m","snapshot":{}}\n'],
    ["claude-code", '{"type":"queue-operation","operation":"enqueue","sessionId":"s"}\n'],
    ["claude-code", `{"parentUuid":null,"isSidechain":false,"type":"user","message":"${longText}`],
    ["codex", '{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"a"}}\n'],
    ["codex", '{"id":"a","timestamp":"2025-08-18T01:16:13.522Z","instructions":null}\n'],
    ["codex", '{"record_type":"state"}\n'],
    [
      "codex",
      '{\n  "session": {\n    "timestamp": "2025-05-07T10:00:00.000Z",\n    "id": "a"\n  },\n  "items": []\n}\n',
    ],
    ["codex", `{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"base":"${longText}`],
    [null, ""],
    [null, "\n\n"],
    [null, "Dear diary"],
    [null, '{"name":"skein","version":"0.1.0"}\n'],
    [null, '{"type":"session"}\n'],
    [null, '{"type":"session_meta"}\n'],
    [null, '["type","session"]\n'],
  ];

  test.each(rows.map(([expected, text]) => [expected, text.slice(0, 60), text] as const))(
    "%s: %j",
    (expected, _, text) => {
      expect(recognizeSource(text)).toBe(expected);
      expect(recognizeSource(new TextEncoder().encode(text))).toBe(expected);
      expect(recognizeSource(`\ufeff${text}`)).toBe(expected);
    },
  );

  test("a head that ends in the middle of a character is still recognized", () => {
    const bytes = new TextEncoder().encode('{"type":"session","version":3,"id":"日本語');
    expect(recognizeSource(bytes.subarray(0, -1))).toBe("pi");
  });
});

describe("sessions of pi, OpenClaw and Skein", () => {
  test("[INT3] are read unchanged", () => {
    const text = sessionText(userLine("a", null), userLine("b", "a"));
    const imported = importSession(text);
    expect(imported).toMatchObject({ source: "pi", sessionId: "s", cwd: "/w", name: null, notKept: [] });
    expect(imported?.startedAt).toBe(Date.UTC(2026, 0, 1));
    expect(imported?.tree.encode()).toBe(text);
  });

  test("[INT6] damage is counted", () => {
    const imported = importSession(
      sessionText(
        userLine("a", null),
        "{torn",
        userLine("b", "a"),
        '{"type":"label","id":"l","parentId":"b","timestamp":"t"}',
      ),
    );
    expect(imported?.notKept).toEqual([
      { what: "A damaged line was skipped.", count: 1, example: "line 3" },
      {
        what: "An invalid entry keeps its position but is not sent to models.",
        count: 1,
        example: "line 5",
      },
    ]);
  });

  test("[INT6] a lost header is reported, and the file name is used instead", () => {
    const imported = importSession(JSON.stringify(userLine("a", null)), { file: "trip.jsonl" });
    expect(imported).toMatchObject({ sessionId: "trip", cwd: "" });
    expect(imported?.notKept).toEqual([
      { what: "The header is missing, so the working directory is unknown.", count: 1 },
    ]);
  });

  test("[NWC23] a name that cannot be a session ID gets the same replacement each time", () => {
    const file = JSON.stringify(userLine("a", null));
    const id = importSession(file, { file: "../a b.jsonl" })?.tree.header.id;
    expect(id).toMatch(/^imported-[0-9a-f]{32}$/);
    expect(importSession(file, { file: "../a b.jsonl" })?.tree.header.id).toBe(id);
  });
});

test("no bytes cause an error to be thrown", () => {
  expect(importSession("Dear diary")).toBeNull();
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      expect(importSession(bytes)).toBeNull();
    }),
  );
});

test("[INT6] an example is one short, harmless line", () => {
  const line = { type: "progress", uuid: `\u001b[2J\n${"x".repeat(1000)}`, parentUuid: null };
  const [first] = importSession(JSON.stringify(line))?.notKept ?? [];
  expect(first?.example).toMatch(/^\\u001b\[2J\\u000ax+$/);
  expect(first?.example?.length).toBe(300);
});

test("accepts any nesting depth", () => {
  const deep = `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`;
  const line = `{"parentUuid":null,"type":"assistant","uuid":"u","message":{"content":[{"type":"tool_use","id":"t","name":"x","input":${deep}}]}}`;
  const imported = importSession(
    `${line}\n{"parentUuid":"u","type":"user","uuid":"v","message":{"content":"hi"}}`,
  );
  const sizes = [...(imported?.tree.entries() ?? [])].length;
  const passedOver = imported?.notKept.some(({ what }) => what.includes("cannot be written")) ?? false;
  expect(sizes).toBe(passedOver ? 1 : 2);
});
