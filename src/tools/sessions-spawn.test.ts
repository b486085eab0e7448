import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { spawnGround } from "../../test/support/spawning.ts";
import type { ToolDeps } from "./contract.ts";
import { sessionsSpawn } from "./sessions-spawn.ts";

let folder = "";

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "sessions-spawn-")));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function called(args: Readonly<Record<string, unknown>>) {
  const { deps, books, caller } = spawnGround(folder);
  const { result } = await sessionsSpawn.execute(args, await caller(), deps as ToolDeps);
  return { result, request: books.requests[0] };
}

describe("sessions_spawn", () => {
  test("[SPN2] has the parameters that it is known for, and refuses others' by name", () => {
    const { properties } = sessionsSpawn.parameters as { properties: Record<string, unknown> };
    expect(Object.keys(properties)).toEqual([
      ...["task", "prompt", "label", "runtime", "agentId", "resumeSessionId", "model", "thinking", "cwd"],
      ...["runTimeoutSeconds", "thread", "mode", "cleanup", "sandbox", "streamTo", "tools", "background"],
      ...["context", "attachments", "attachAs"],
    ]);
    expect(sessionsSpawn.refusedNames).toMatchObject({
      reply_to:
        'sessions_spawn does not support "reply_to". Use "message" or "sessions_send" for channel delivery.',
    });
    expect(Object.keys(sessionsSpawn.refusedNames ?? {})).toHaveLength(8);
  });

  test("[SPN2] fills in what is left out", async () => {
    const { result, request } = await called({ task: "Count", runTimeoutSeconds: 0 });
    expect(result).toMatchObject({ status: "ok", mode: "run" });
    expect(request?.child).toMatchObject({ cleanup: "keep", mode: "run" });
    expect(request?.options?.runTimeoutSeconds).toBe(0);
    expect(request).not.toHaveProperty("awaitedBy");
  });

  test("[SPN2] takes prompt for task", async () => {
    expect((await called({ prompt: "Count" })).request?.child?.task).toBe("Count");
  });

  test.each([
    [{ task: "a", prompt: "b" }, "Provide either task or prompt (not both)."],
    [{}, "task is required"],
    [{ task: "a", attachAs: {} }, "attachAs says where attachments go, and there are none."],
  ])("[SPN2] %j is refused", async (args, error) => {
    expect((await called(args)).result).toEqual({ status: "error", code: "invalid_arguments", error });
  });

  test("[SPN4] of another's agents there are none here", async () => {
    expect((await called({ task: "a", runtime: "acp" })).result).toEqual({
      status: "error",
      code: "acp_unavailable",
      error: 'runtime="acp" is not available here: no ACP agents are configured',
    });
  });

  test("[SPN15] keeps notes of attachments in the transcript", () => {
    const kept = sessionsSpawn.persisted?.({ task: "a", attachments: [{ name: "f", content: "secret" }] });
    expect(JSON.stringify(kept)).not.toContain("secret");
  });
});
