import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createRedactor } from "../../access/redaction/redactor.ts";
import { withoutTranscriptPaths } from "./mask.ts";

const redactor = withoutTranscriptPaths(createRedactor());
const rows = { sessions: [{ key: "main", transcriptPath: "/srv/skein/main.jsonl", kind: "main" }] };

describe("the paths of session files", () => {
  test("are removed from values and texts, even if escaped several times", () => {
    let text = JSON.stringify(rows);
    for (let depth = 0; depth < 5; depth++) {
      const safe = redactor.redact(text).text;
      expect(safe).not.toContain("/srv/");
      let inner: unknown = safe;
      for (let at = 0; at <= depth; at++) inner = JSON.parse(inner as string);
      expect(inner).toEqual({ sessions: [{ key: "main", transcriptPath: "", kind: "main" }] });
      text = JSON.stringify(text);
    }
    expect(redactor.redactJson(rows).value).toEqual({
      sessions: [{ key: "main", transcriptPath: "", kind: "main" }],
    });
    const windows = JSON.stringify({ transcriptPath: "C:\\Users\\ann\\main.jsonl" });
    expect(redactor.redact(windows).text).toBe('{"transcriptPath":""}');
  });

  test("leaves everything else unchanged", () => {
    const words = fc
      .array(fc.constantFrom("transcript", "Path", '"', "\\", ":", "/srv/x", " "))
      .map((parts) => parts.join(""));
    fc.assert(
      fc.property(words, (text) => {
        if (!text.includes('"transcriptPath'))
          expect(redactor.redact(text).text).toBe(createRedactor().redact(text).text);
      }),
    );
  });

  test("a long text of backslashes takes linear time", () => {
    const text = `"transcriptPath":"${"\\".repeat(1_000_000)}`;
    expect(redactor.redact(text).text.length).toBe(text.length);
  });
});
