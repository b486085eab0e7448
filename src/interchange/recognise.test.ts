import { describe, expect, test } from "vitest";
import { recognise } from "./recognise.ts";

const long = "x".repeat(400_000);

describe("recognise", () => {
  const rows: [string | null, string][] = [
    ["skein", '{"type":"session","version":3,"id":"a","skein":{"key":"agent:main:main"}}\n'],
    ["pi", '{"type":"session","version":3,"id":"a","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}\n'],
    ["pi", '{"type":"session","id":"version one"}\n'],
    [
      "pi",
      '{"type":"title","title":"of another program"}\nnot json\n{"type":"session","version":3,"id":"a"}\n',
    ],
    ["pi", '{"type":"message","id":"a1","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z"}\n'],
    ["pi", `{"type":"session","version":3,"id":"${long}`],
    [
      "claude-code",
      '{"parentUuid":null,"type":"user","uuid":"u1","message":{"role":"user","content":"hi"}}\n',
    ],
    ["claude-code", '{"type":"summary","summary":"A title","leafUuid":"u1"}\n'],
    ["claude-code", '{"type":"file-history-snapshot","messageId":"m","snapshot":{}}\n'],
    ["claude-code", '{"type":"queue-operation","operation":"enqueue","sessionId":"s"}\n'],
    ["claude-code", `{"parentUuid":null,"isSidechain":false,"type":"user","message":"${long}`],
    ["codex", '{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"a"}}\n'],
    ["codex", '{"id":"a","timestamp":"2025-08-18T01:16:13.522Z","instructions":null}\n'],
    ["codex", '{"record_type":"state"}\n'],
    [
      "codex",
      '{\n  "session": {\n    "timestamp": "2025-05-07T10:00:00.000Z",\n    "id": "a"\n  },\n  "items": []\n}\n',
    ],
    ["codex", `{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"base":"${long}`],
    [null, ""],
    [null, "\n\n"],
    [null, "Dear diary"],
    [null, '{"name":"skein","version":"0.1.0"}\n'],
    [null, '{"type":"session"}\n'],
    [null, '{"type":"session_meta"}\n'],
    [null, '["type","session"]\n'],
  ];

  test.each(rows.map(([expected, text]) => [expected, text.slice(0, 60), text] as const))(
    "[INT1] %s: %j",
    (expected, _, text) => {
      expect(recognise(text)).toBe(expected);
      expect(recognise(new TextEncoder().encode(text))).toBe(expected);
      expect(recognise(`\ufeff${text}`)).toBe(expected);
    },
  );

  test("[INT1] a head that ends in the middle of a character is read all the same", () => {
    const bytes = new TextEncoder().encode('{"type":"session","version":3,"id":"日本語');
    expect(recognise(bytes.subarray(0, -1))).toBe("pi");
  });
});
