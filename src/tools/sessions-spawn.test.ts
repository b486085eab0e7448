import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fakeApp } from "../../test/support/fake-app.ts";
import { spawnGround } from "../../test/support/spawning.ts";
import { runSessionTool } from "./run-session-tool.ts";
import { sessionsSpawn } from "./sessions-spawn.ts";

const redactor = { redactJson: (value: unknown) => ({ value, count: 0 }) };

let folder = "";

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "sessions-spawn-")));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function called(args: Readonly<Record<string, unknown>>) {
  const { deps: app, books, caller } = spawnGround(folder);
  const { result } = await runSessionTool(sessionsSpawn, args, await caller(), fakeApp({ ...app, redactor }));
  return { result, request: books.requests[0] };
}

describe("sessions_spawn", () => {
  test("has its documented parameters, and refuses those of similar tools by name", () => {
    const { properties } = sessionsSpawn.parameters as { properties: Record<string, unknown> };
    expect(Object.keys(properties)).toEqual([
      ...["task", "label", "runtime", "agentId", "resumeSessionId", "model", "thinking", "cwd"],
      ...["runTimeoutSeconds", "thread", "mode", "cleanup", "sandbox", "streamTo", "tools", "background"],
      ...["context", "attachments", "attachAs"],
    ]);
    expect(sessionsSpawn.refusedNames).toMatchObject({
      reply_to: 'sessions_spawn does not support "reply_to". Use "sessions_send" for channel delivery.',
    });
    expect(Object.keys(sessionsSpawn.refusedNames ?? {})).toHaveLength(8);
  });

  test("fills in defaults", async () => {
    const { result, request } = await called({ task: "Count", runTimeoutSeconds: 0 });
    expect(result).toMatchObject({ status: "ok", mode: "run" });
    expect(request?.child).toMatchObject({ cleanup: "keep", mode: "run" });
    expect(request?.options?.runTimeoutSeconds).toBe(0);
    expect(request).not.toHaveProperty("awaitedBy");
  });

  test("accepts prompt as task", async () => {
    expect((await called({ prompt: "Count" })).request?.child?.task).toBe("Count");
  });

  test.each([
    [{ task: "a", prompt: "b" }, "sessions_spawn accepts either task or prompt, not both"],
    [{}, "task is required"],
    [
      { task: "a", attachAs: {} },
      "attachAs sets where attachments are written, but there are no attachments.",
    ],
  ])("%j is refused", async (args, error) => {
    expect((await called(args)).result).toEqual({ status: "error", code: "invalid_arguments", error });
  });

  test("[FAM27] refuses options that do not exist here", async () => {
    expect((await called({ task: "a", runtime: "acp" })).result).toEqual({
      status: "error",
      code: "acp_unavailable",
      error: 'runtime="acp" is not available because no ACP agents are configured (acp.agents)',
    });
  });

  test("keeps the content of a file unchanged, even if it is empty", async () => {
    const attachments = [
      { name: "blanks", content: "  two\n\n" },
      { name: "empty", content: "" },
      { name: "coded", content: "aGVsbG8=", encoding: "BASE64" },
    ];
    const { result, request } = await called({ task: "a", attachments });
    const place = request?.child?.attachments ?? "";
    expect(["blanks", "empty", "coded"].map((name) => readFileSync(join(place, name), "utf8"))).toEqual([
      "  two\n\n",
      "",
      "hello",
    ]);
    const kept = sessionsSpawn.persisted?.({ task: "a", attachments }) as {
      attachments: { content: string }[];
    };
    const { files } = result.attachments as { files: { bytes: number; sha256: string }[] };
    expect(kept.attachments.map(({ content }) => content)).toEqual(
      files.map(({ bytes, sha256 }) => `[not kept here: ${bytes} bytes, sha256 ${sha256}]`),
    );
  });

  test.each(["aGVsbG8=\n", " aGVsbG8=", "aGVs\nbG8="])("%j is not base64", async (content) => {
    const attachments = [{ name: "a", content, encoding: "base64" }];
    expect((await called({ task: "a", attachments })).result).toMatchObject({
      status: "error",
      code: "attachments_invalid_base64_or_too_large",
    });
  });

  test("[FAM17] keeps notes of attachments in the transcript", () => {
    const kept = sessionsSpawn.persisted?.({ task: "a", attachments: [{ name: "f", content: "secret" }] });
    expect(JSON.stringify(kept)).not.toContain("secret");
  });
});
