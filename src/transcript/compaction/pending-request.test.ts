import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assistant, user } from "../../../test/support/conversation.ts";
import type { ContextMessage } from "../../core/context.ts";
import {
  addEarlierAsks,
  appendRequest,
  findPendingRequest,
  noAsks,
  removeRequest,
} from "./pending-request.ts";

interface Given {
  readonly splitTurn?: boolean;
  readonly previousSummary?: string;
  readonly toSummarize?: readonly ContextMessage[];
}

const requestOf = ({ splitTurn = true, previousSummary, toSummarize = [] }: Given) =>
  findPendingRequest(
    { splitTurn, previousSummary: previousSummary ?? null },
    addEarlierAsks(noAsks, toSummarize),
  );

describe("the request of a cut turn", () => {
  test("[CMP16] is the user's last, word for word", () => {
    const toSummarize = [user("old"), assistant("x"), user("  Do A.\nThen B. "), assistant("y")];
    expect(requestOf({ toSummarize })).toBe("Do A.\nThen B.");
    expect(requestOf({ toSummarize, splitTurn: false })).toBeNull();
    expect(requestOf({})).toBeNull();
  });

  test("[CMP16] is carried over while the same turn is cut again, and replaced by a newer one", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 300 }), (text) => {
        const request = text
          .toWellFormed()
          .replaceAll(/[\r\u2028\u2029]/g, "")
          .trim();
        const first = appendRequest("## Goal\nx", request || null, 5000);
        const again = appendRequest("## Goal\ny", requestOf({ previousSummary: first }), 5000);
        expect(again.replace("## Goal\ny", "## Goal\nx")).toBe(first);
        expect(requestOf({ previousSummary: first, toSummarize: [user("new")] })).toBe("new");
      }),
    );
  });

  const note: ContextMessage = { role: "custom", customType: "hook", content: "a note" };
  const bash: ContextMessage = { role: "bashExecution", command: "ls", output: "x" };
  const left: ContextMessage = { role: "branchSummary", summary: "left", timestamp: 1 };
  const from = (kind: string, sourceSessionKey?: string): ContextMessage => ({
    ...user("by others"),
    provenance: { kind, ...(sourceSessionKey === undefined ? {} : { sourceSessionKey }) },
  });
  const image: ContextMessage = {
    role: "user",
    content: [{ type: "image", data: "aGFsbG8h", mimeType: "image/png" }],
  };
  const quoted = (request: string) => appendRequest("## Goal\nx", request, 1000);

  test.each<[string, Given, string]>([
    ["not a note after it", { toSummarize: [user("ask"), note, bash, left, from("internal_system")] }, "ask"],
    ["a note if there is no request", { toSummarize: [note, bash] }, "[Note from hook]: a note"],
    [
      "another session's, marked as such",
      { toSummarize: [user("ask"), from("inter_session", "agent:x:main")] },
      "[Message from another session agent:x:main]: by others",
    ],
    [
      "another session's without a key",
      { toSummarize: [from("inter_session")] },
      "[Message from another session]: by others",
    ],
    ["an image's, by its description", { toSummarize: [user("old"), image] }, "[image image/png, 6 bytes]"],
    [
      "the carried-over request rather than a note",
      { previousSummary: quoted("ask"), toSummarize: [note] },
      "ask",
    ],
    [
      "a newer note rather than an older one",
      { previousSummary: quoted("[Note from hook]: old"), toSummarize: [note] },
      "[Note from hook]: a note",
    ],
  ])("[CMP16] is %s", (_, given, expected) => {
    expect(requestOf(given)).toBe(expected);
  });

  test("[CMP16] is the newest, however far back it is", () => {
    const asks = addEarlierAsks(addEarlierAsks(noAsks, [note, assistant("x")]), [
      user("ask"),
      assistant("y"),
    ]);
    expect(addEarlierAsks(asks, [user("older")]).said?.text).toBe("ask");
    const previousSummary = quoted("older still");
    expect(findPendingRequest({ splitTurn: true, previousSummary }, asks)).toBe("ask");
  });

  test("[CMP16] occurs once in the summary, ends no tag, and is shortened if needed", () => {
    const copied = "## Goal\nx\n\n## The request under way\n> old\n\n## Decisions\ny";
    const text = appendRequest(copied, "do </summary> it", 1000);
    expect(text).toBe("## Goal\nx\n\n## Decisions\ny\n\n## The request under way\n> do &lt;/summary> it");
    expect(removeRequest(text)).toBe("## Goal\nx\n\n## Decisions\ny");
    expect(appendRequest("s", "x".repeat(100_000), 1e6).length).toBeLessThan(5000);
    expect(appendRequest("s", "word ".repeat(1000), 100).length).toBeLessThan(700);
    expect(appendRequest("s", "word ".repeat(1000), 0)).toBe("s");
  });
});
