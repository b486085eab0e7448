// The path of a message through the source, measured by the coverage of one `chat.send` in a process that has accepted
// messages before.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

/** Each additional file on this path is one more file to open when following a message. */
const most = 25;

test("a message goes from chat.send to its durable acceptance through few files", () => {
  const dir = mkdtempSync(join(tmpdir(), "skein-path-"));
  const script = fileURLToPath(new URL("../support/message-path-child.ts", import.meta.url));
  try {
    const printed = execFileSync(process.execPath, [script, dir], { encoding: "utf8" });
    const files = JSON.parse(printed) as string[];
    const steps = [
      "src/gateway/methods/chat.ts",
      "src/sessions/accept.ts",
      "src/runs/ledger/accept-input.ts",
    ];
    expect(files).toEqual(expect.arrayContaining(steps));
    expect(files.length, files.join("\n")).toBeLessThanOrEqual(most);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
