import { expect, test } from "vitest";
import { atOnce } from "../core/slices.ts";
import type { TranscriptMessage } from "../transcript/contract.ts";
import { derive, EntryIds, traceStep } from "../transcript/derive.ts";
import { explainRequest } from "./explain-request.ts";

const secret = "the-secret-of-the-desk";

/** Returns a request with one message whose text was replaced by a step. */
function replaceText(before: string, after: string) {
  const message: TranscriptMessage = { role: "user", content: before };
  const messages = [derive(message, { content: after })];
  const context = { messages: [message], entryIds: ["e1"] };
  const change = new EntryIds(context.messages, context.entryIds).recorder("step")("kind", "note", message);
  traceStep({ messages, changes: [change] });
  return { context, messages, changes: [change] };
}

test("a text that is cut before it is masked ends before the cut", () => {
  for (let cut = 1; cut < secret.length; cut++) {
    const start = "x".repeat(64 * 1024 - cut);
    const request = replaceText(`${start}${secret} and more`, `${start.slice(0, -100)}, shortened`);
    const mask = (text: string) => text.replaceAll(secret, "•••");
    const { changes } = atOnce(explainRequest(request, mask));
    expect(changes[0]?.before).toMatch(/^…?x*…?$/);
  }
});

test("texts are shown from shortly before their first difference", () => {
  const request = replaceText(`${"a".repeat(1000)}old`, `${"a".repeat(1000)}new`);
  const { changes, parts } = atOnce(explainRequest(request));
  expect(changes[0]).toMatchObject({ entryId: "e1", messageIndex: 0 });
  expect(changes[0]?.before).toBe(`…${"a".repeat(200)}old`);
  expect(changes[0]?.after).toBe(`…${"a".repeat(200)}new`);
  expect(parts).toMatchObject([{ messageIndex: 0, entryIds: ["e1"] }]);
});

test("a message that was left out has only a text before the change", () => {
  const request = replaceText("gone", "");
  traceStep({ messages: [], changes: request.changes });
  const { changes } = atOnce(explainRequest({ ...request, messages: [] }));
  expect(changes[0]).toEqual({ step: "step", entryId: "e1", kind: "kind", note: "note", before: "gone" });
});

test("texts of later changes are left out once 2 Mi characters are reached", () => {
  const { changes, ...request } = replaceText("a".repeat(10_000), "b".repeat(10_000));
  const many = Array.from({ length: 1000 }, () => changes[0] as (typeof changes)[number]);
  const explained = atOnce(explainRequest({ ...request, changes: many })).changes;
  expect(explained[0]?.before).toHaveLength(3999);
  expect(explained.at(-1)?.before).toBeUndefined();
  expect(JSON.stringify(explained).length).toBeLessThan(3 * 1024 * 1024);
});
