import { describe, expect, test } from "vitest";
import { createCliChannel, createConsoleChannel } from "./cli.ts";
import type { OutboundMessage } from "./contract.ts";

const message: OutboundMessage = {
  text: "one\ntwo \u001b[2Jthree",
  idempotencyKey: "k",
  sessionKey: "agent:main:main",
  runId: null,
  userId: null,
  agentId: "main",
  signal: new AbortController().signal,
};

describe("built-in channels", () => {
  test("cli writes the text without cursor movements", async () => {
    const written: string[] = [];
    const cli = createCliChannel((text) => void written.push(text));
    expect(await cli.deliver(message, { channel: "cli" })).toEqual({ written: true });
    expect([cli.id, written]).toEqual(["cli", ["one\ntwo \\u001b[2Jthree\n"]]);
  });

  test("a sink that fails is a failed delivery", async () => {
    const cli = createCliChannel(() => Promise.reject(new Error("EPIPE")));
    await expect(cli.deliver(message, { channel: "cli" })).rejects.toThrow("EPIPE");
  });

  test("console delivers nothing: the text is in the session", async () => {
    const console = createConsoleChannel();
    expect(await console.deliver(message, { channel: "console" })).toEqual({ sessionKey: "agent:main:main" });
  });
});
