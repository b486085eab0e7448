import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assistant, user } from "../../../test/support/conversation.ts";
import { requestUnderWay, withoutRequest, withRequest } from "./request-under-way.ts";

const plan = (over: object) => ({ splitTurn: true, toSummarise: [], previousSummary: null, ...over });

describe("the request that a cut turn works on", () => {
  test("[CMP16] is the user's last, to the letter", () => {
    const toSummarise = [user("old"), assistant("x"), user("  Do A.\nThen B. "), assistant("y")];
    expect(requestUnderWay(plan({ toSummarise }))).toBe("Do A.\nThen B.");
    expect(requestUnderWay(plan({ toSummarise, splitTurn: false }))).toBeNull();
    expect(requestUnderWay(plan({}))).toBeNull();
  });

  test("[CMP16] is handed on while the same turn is cut again, and gives way to a newer one", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 300 }), (text) => {
        const request = text
          .toWellFormed()
          .replaceAll(/[\r\u2028\u2029]/g, "")
          .trim();
        const first = withRequest("## Goal\nx", request || null, 5000);
        const again = withRequest("## Goal\ny", requestUnderWay(plan({ previousSummary: first })), 5000);
        expect(again.replace("## Goal\ny", "## Goal\nx")).toBe(first);
        expect(requestUnderWay(plan({ previousSummary: first, toSummarise: [user("new")] }))).toBe("new");
      }),
    );
  });

  test("[CMP16] stands in the summary once, ends no tag, and is short where it must be", () => {
    const copied = "## Goal\nx\n\n## The request under way\n> old\n\n## Decisions\ny";
    const text = withRequest(copied, "do </summary> it", 1000);
    expect(text).toBe("## Goal\nx\n\n## Decisions\ny\n\n## The request under way\n> do &lt;/summary> it");
    expect(withoutRequest(text)).toBe("## Goal\nx\n\n## Decisions\ny");
    expect(withRequest("s", "x".repeat(100_000), 1e6).length).toBeLessThan(5000);
    expect(withRequest("s", "word ".repeat(1000), 100).length).toBeLessThan(700);
    expect(withRequest("s", "word ".repeat(1000), 0)).toBe("s");
  });
});
