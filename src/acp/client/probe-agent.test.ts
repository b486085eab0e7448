import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { toys } from "../../../test/support/acp-toys.ts";
import { toyPids, writeToy } from "../../../test/support/acp-toys.ts";
import { isAlive } from "../../../test/support/marked.ts";
import { MessageLines } from "./message-stream.ts";
import { probeAgent, readResponse } from "./probe-agent.ts";

let folder = "";
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "skein-probe-")));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const patient = 30_000;

async function probe(toy: keyof typeof toys, timeoutMs = patient) {
  rmSync(join(folder, "toy.pids"), { force: true });
  const command = writeToy(folder, "toy", toy);
  const agent = { name: "toy", command, args: [], env: { TOY_KEY: "k1" }, permissions: "ask" } as const;
  const found = await probeAgent(agent, { env: { PATH: process.env.PATH }, cwd: folder, timeoutMs });
  const pids = toyPids(folder, "toy");
  expect(pids.filter(isAlive)).toEqual([]);
  return { found, started: pids.length, timeoutMs };
}

/** Probes an agent that never responds, after waiting as long as necessary for it to start. */
async function probeSilent(toy: keyof typeof toys, pids: number) {
  let probed = await probe(toy, 500);
  while (probed.started < pids && probed.timeoutMs < patient) probed = await probe(toy, probed.timeoutMs * 2);
  expect(probed.started).toBe(pids);
  return { ...probed, late: `it did not respond within ${probed.timeoutMs / 1000} s` };
}

describe("probing an agent", () => {
  test("returns the agent's name and capabilities, and ignores everything else", async () => {
    expect((await probe("answers")).found).toEqual({
      answers: true,
      name: "Toy Agent",
      version: "1.2.3",
      protocolVersion: 1,
      can: { load: true, resume: true, fork: false, list: false },
      authMethods: ["API key", "web"],
    });
    expect((await probe("terse")).found).toEqual({
      answers: true,
      protocolVersion: 1,
      can: { load: false, resume: false, fork: false, list: false },
      authMethods: [],
    });
  });

  test.each([
    ["refuses", "it refused to start: no licence"],
    ["newer", "it uses protocol version 99, not 1"],
    ["nonsense", "it uses an unknown protocol version, not 1"],
    ["exits", "it did not respond; it exited with code 3; its stderr ends with: key k1 is not known"],
  ] as const)("reports why an agent that %s does not answer", async (toy, problem) => {
    expect((await probe(toy)).found).toEqual({ answers: false, problem });
  });

  test("gives up on a silent agent, and stops it with everything it started", async () => {
    const { found, late } = await probeSilent("hangs", 2);
    expect(found).toEqual({ answers: false, problem: late });
  });

  test("quotes the beginning of output that is not a message", async () => {
    const { found, late } = await probeSilent("garbage", 1);
    expect(found).toEqual({
      answers: false,
      problem: `${late}; it wrote text that is not a message: usage: toy [--acp]`,
    });
  });

  test("starts nothing for a missing command", async () => {
    const agent = { name: "toy", command: "no-such-agent", args: [], env: {}, permissions: "ask" } as const;
    expect(await probeAgent(agent, { env: { PATH: folder }, cwd: folder, timeoutMs: patient })).toEqual({
      answers: false,
      problem: 'the command "no-such-agent" was not found on PATH',
    });
  });

  test("finds the response however it is split, in bounded memory", async () => {
    const line = JSON.stringify({ jsonrpc: "2.0", id: 1, result: { text: "日本\n" } });
    const bytes = Buffer.from(`Hello\n{"id":1}\n{"id":2,"result":1}\n${line}\n`);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length)), async (places) => {
        const cuts = [0, ...places.toSorted((a, b) => a - b), bytes.length];
        const chunks = cuts.map((from, index) => bytes.subarray(from, cuts[index + 1]));
        const lines = new MessageLines();
        expect(await readResponse(Readable.from(chunks), lines, 1)).toMatchObject({
          result: { text: "日本\n" },
        });
        expect(lines.stray).toBe("Hello");
      }),
    );
    const flood = Readable.from(Array.from({ length: 100 }, () => Buffer.alloc(1024 * 1024, "x")));
    await expect(readResponse(flood, new MessageLines(), 1)).rejects.toThrow("a message of more than");
  });
});
