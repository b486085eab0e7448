import { expect, test } from "vitest";
import { visibleMessage } from "./visible.ts";

test("[CTX8] what the model sees of each role", () => {
  const run = { role: "bashExecution" as const, command: "ls", output: "" };
  expect(visibleMessage({ role: "custom", customType: "x", content: "c", timestamp: 1 })).toEqual({
    role: "user",
    content: "c",
    timestamp: 1,
  });
  expect(visibleMessage({ ...run, exitCode: 2, truncated: true })?.content).toBe(
    "The user ran `ls`:\n(no output)\nIt ended with code 2.\nThe output is cut.",
  );
  expect(visibleMessage({ ...run, cancelled: true })?.content).toContain("cancelled");
  expect(visibleMessage({ ...run, excludeFromContext: true })).toBeNull();
  expect(visibleMessage({ role: "compactionSummary", summary: "S", timestamp: 1 })?.content).toContain(
    "<summary>\nS\n</summary>",
  );
  expect(visibleMessage({ role: "narrator", content: "x" } as never)).toBeNull();
});
