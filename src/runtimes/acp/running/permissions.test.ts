import type { CreateTerminalRequest, RequestPermissionRequest } from "@agentclientprotocol/sdk/unstable";
import { expect, test } from "vitest";
import type { ToolCallBlock } from "../../../core/messages.ts";
import { PermissionDesk } from "./permissions.ts";

const options: RequestPermissionRequest["options"] = [{ optionId: "yes", name: "Yes", kind: "allow_once" }];

/** A person who allows the first and refuses all else. */
function deskOf(step = 1) {
  const asked: ToolCallBlock[] = [];
  const desk = new PermissionDesk({
    step,
    policy: "ask",
    signal: new AbortController().signal,
    approve: async (call) => {
      asked.push(call);
      return { approved: asked.length === 1, note: "" };
    },
    known: () => null,
    tell: () => undefined,
    onFailure: (error) => {
      throw error;
    },
  });
  const grant = (rawInput: unknown) =>
    desk.forCall({ sessionId: "s", toolCall: { toolCallId: "c", rawInput }, options });
  const terminal = (request: Omit<CreateTerminalRequest, "sessionId">) =>
    desk.forTerminal({ sessionId: "s", ...request });
  return { asked, grant, terminal };
}

const line = "echo a; rm -rf b";

test.each<[string, unknown, Omit<CreateTerminalRequest, "sessionId">, "granted" | "refused"]>([
  ["a line, as that line", { command: line }, { command: line }, "granted"],
  ["a line, to a shell", { command: line }, { command: "/bin/bash", args: ["-lc", line] }, "granted"],
  ["a plain line, as its words", { command: "ls -l b" }, { command: "ls", args: ["-l", "b"] }, "granted"],
  ["words, as the same", { command: "echo", args: ["a; b"] }, { command: "echo", args: ["a; b"] }, "granted"],
  [
    "words, to a shell",
    { command: "echo", args: ["a; rm -rf b"] },
    { command: "sh", args: ["-c", line] },
    "refused",
  ],
  ["words, as a line", { command: ["echo", "a; rm -rf b"] }, { command: line }, "refused"],
  ["words, cut otherwise", { command: "rm", args: ["a", "b"] }, { command: "rm", args: ["a b"] }, "refused"],
  ["a line, its words cut otherwise", { command: "rm a b" }, { command: "rm", args: ["a b"] }, "refused"],
  ["with variables", { command: "ls" }, { command: "ls", env: [{ name: "PATH", value: "/x" }] }, "refused"],
])(
  "[ATA2] a terminal runs what was granted with a call, and nothing like it: %s",
  async (_, input, request, verdict) => {
    const { grant, terminal } = deskOf();
    expect(await grant(input)).toEqual({ outcome: "selected", optionId: "yes" });
    expect(await terminal(request)).toBe(verdict);
  },
);

test("[ATA2] a person is shown the variables and the folder of a terminal", async () => {
  const { asked, terminal } = deskOf();
  const env = [{ name: "LD_PRELOAD", value: "/tmp/x.so" }];
  await terminal({ command: "ls", env, cwd: "/work/sub" });
  expect(asked[0]?.arguments).toEqual({ command: "ls", args: [], env, cwd: "/work/sub" });
});

test("[ATA3] what was answered in one prompt of a run is another question in the next", async () => {
  const [first, next] = [deskOf(1), deskOf(2)];
  await first.grant({ command: "ls" });
  await first.grant({ command: "ls" });
  await next.grant({ command: "ls" });
  const ids = [...first.asked, ...next.asked].map(({ id }) => id);
  expect(new Set(ids).size).toBe(3);
});
