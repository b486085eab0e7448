import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { eventsOf, start } from "../../test/support/run-events.ts";
import { SkeinError } from "../core/errors.ts";
import type { SkeinEvent } from "../core/events.ts";
import type { LogSettings } from "./log.ts";
import { createLog, maskerOf, sanitize } from "./log.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-log-"));
afterAll(() => rmSync(folder, { recursive: true }));

type Line = Record<string, unknown>;

async function logged(settings: Partial<LogSettings> = {}) {
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  const clock = { now: () => start };
  const log = await createLog({ level: "info", destination, clock, ...settings });
  return { log, lines, parsed: () => lines.map((line) => JSON.parse(line) as Line) };
}

const event = eventsOf("r1", { userId: "ann" });
const secret = "sk-very-secret-value";
const hidden = "what was said";
/** One event of each type that contains content. */
const contents: readonly SkeinEvent[] = [
  event("run.delta", 0, { kind: "text", delta: hidden, step: 1, offset: 0 }),
  event("run.tool", 0, { phase: "call", toolCallId: "c", toolName: "read", arguments: { path: hidden } }),
  event("run.tool", 0, { phase: "result", toolCallId: "c", toolName: "read", content: [hidden] }),
  event("entry.appended", 0, {
    entry: { type: "message", id: "e1", message: { role: "user", content: hidden } },
  } as unknown as { entry: SkeinEvent<"entry.appended">["entry"] }),
  event("approval.requested", 0, {
    ...{ approvalId: "p", toolCallId: "c", toolName: "read", expiresAt: 0 },
    arguments: { path: hidden },
  }),
];

describe("the log", () => {
  test("a line has the event, the owner and the time", async () => {
    const { log, lines, parsed } = await logged();
    log.onEvent(
      event("run.ended", 5, { state: "error", code: "overloaded", error: "The model\nis busy \u001b[2J" }),
    );
    expect(parsed()).toEqual([
      {
        level: "warn",
        time: start,
        pid: process.pid,
        event: "run.ended",
        at: start + 5,
        userId: "ann",
        sessionKey: "agent:main:main",
        sessionId: "s1",
        runId: "r1",
        state: "error",
        error: { code: "overloaded", message: "The model\nis busy \u001b[2J" },
        msg: "run ended",
      },
    ]);
    expect(lines[0]?.indexOf("\n")).toBe((lines[0]?.length ?? 0) - 1);
    expect(lines[0]).not.toContain("\u001b");
  });

  test.each<[string, SkeinEvent]>([
    ["info", event("run.ended", 0, { state: "ok", code: null, error: null })],
    ["info", event("run.retry", 0, { attempt: 1, delayMs: 1, code: "x", error: "y" })],
    ["warn", event("run.ended", 0, { state: "timeout", code: null, error: null })],
    ["warn", event("run.compaction", 0, { phase: "not_done", measure: "summary" })],
    ["error", event("outbox.dead", 0, { outboxId: "o", channel: "slack", error: "x" })],
    ["debug", event("run.queued", 0, { lane: "main", kind: "user" })],
  ])("at %s", async (level, each) => {
    const { log, parsed } = await logged({ level: "trace" });
    log.onEvent(each);
    expect(parsed().map((line) => line.level)).toEqual([level]);
  });

  test("[OBS12] no line contains messages or tool arguments", async () => {
    const { log, lines } = await logged({ level: "trace" });
    for (const each of contents) log.onEvent(each);
    expect(lines).toHaveLength(contents.length - 1);
    expect(lines.join("")).not.toContain(hidden);
  });

  test("[LIB26] secrets, headers and redacted text are in no line", async () => {
    const redact = (text: string) => text.replaceAll("ann@example.com", "[mail]");
    const { log, lines } = await logged({ redact, secrets: ["", "sk-very", secret] });
    log.onEvent(
      event("run.ended", 0, { state: "error", code: "x", error: `key ${secret} of ann@example.com` }),
    );
    log.write("info", `with ${secret}`, {
      [`name ${secret}`]: [{ deep: `${"y".repeat(1995)}${secret}` }],
      request: { headers: { Authorization: "Bearer abc", Cookie: "abc" } },
      error: new SkeinError("internal", { problem: secret }),
    });
    const all = lines.join("");
    for (const each of ["sk-very", "secret-value", "ann@example", "abc"]) expect(all).not.toContain(each);
    expect(all).toContain("[mail]");
  });

  test("[LIB26] a failing redaction logs nothing", async () => {
    const redact = () => {
      throw new Error("no");
    };
    const { log, lines } = await logged({ redact });
    log.write("info", hidden, { text: hidden });
    expect(lines.join("")).toContain("[redacted]");
    expect(lines.join("")).not.toContain(hidden);
  });

  test("hostile values are shortened, and none of them throws", async () => {
    const { log, lines, parsed } = await logged();
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    const getter = Object.defineProperty({}, "x", {
      enumerable: true,
      get: () => circle.no?.toString.call(null),
    });
    const thrower = new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error("proxy");
        },
      },
    );
    log.write("info", "a".repeat(100_000), { long: "b".repeat(100_000), circle, getter, thrower });
    log.write("info", "more", {
      big: 10n,
      nan: Number.NaN,
      fn: () => 1,
      list: new Array(1e6).fill(1),
      bytes: new Uint8Array(9),
    });
    log.write("info", "emoji", { text: `${"x".repeat(1999)}😀` });
    const [first, second, third] = parsed();
    expect(String(first?.long).length).toBeLessThan(2030);
    expect(String(first?.msg).length).toBeLessThan(2030);
    expect(second).toMatchObject({ big: "10", nan: "NaN", bytes: "9 bytes" });
    expect(String(third?.text).isWellFormed()).toBe(true);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(20_000);
  });

  test("an error is logged with its code and message, and its stack only at debug level", async () => {
    const error = new SkeinError("internal", { problem: "x" });
    for (const [level, hasStack] of [
      ["info", false],
      ["debug", true],
    ] as const) {
      const { log, parsed } = await logged({ level });
      log.write("warn", "failed", { error });
      const [line] = parsed();
      expect(line?.error).toMatchObject({ code: "internal", message: error.message });
      expect(Object.keys(line?.error ?? {}).includes("stack")).toBe(hasStack);
    }
  });

  test("[FS15] a file is written at once, private to its owner; closing twice and writing after it are harmless", async () => {
    const file = join(folder, "logs", "skein.log");
    const problems: unknown[] = [];
    const log = await createLog({
      level: "info",
      destination: file,
      report: (error) => problems.push(error),
    });
    log.write("info", "one");
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ level: "info", msg: "one" });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    log.close();
    log.close();
    expect(() => log.write("info", "late")).not.toThrow();
    await expect(createLog({ level: "info", destination: folder })).rejects.toThrow("EISDIR");
  });

  test("[FS15] a destination that fails is reported", async () => {
    const problems: unknown[] = [];
    const destination = {
      write: () => {
        throw new Error("full");
      },
    };
    const log = await createLog({ level: "info", destination, report: (error) => problems.push(error) });
    log.onEvent(event("session.created", 0, {}));
    expect(problems).toMatchObject([{ message: "full" }]);
  });
});

const plain = { redact: (text: string) => text, withStacks: false };

describe("values in a log", () => {
  test("deep, wide and circular ones are shortened", () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    const deep = JSON.stringify(sanitize(circle, plain));
    expect(deep).toBe(`${'{"self":'.repeat(6)}"…"${"}".repeat(6)}`);
    const wide = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`k${index}`, index]));
    expect(Object.keys(sanitize(wide, plain) as object)).toHaveLength(100);
    expect(sanitize(new Array(500).fill(1), plain)).toHaveLength(100);
  });

  test("[LIB26] any value can be logged, without secrets", () => {
    const secret = "s3cr3t";
    const text = fc.oneof(
      fc.string(),
      fc.constant(secret),
      fc.string().map((each) => each + secret + each),
    );
    const value = fc.anything({
      key: text,
      values: [text, fc.bigInt(), fc.double()],
      withNullPrototype: true,
    });
    fc.assert(
      fc.property(value, (each) => {
        const shown = JSON.stringify(sanitize(each, { redact: maskerOf([secret]), withStacks: true })) ?? "";
        expect(shown).not.toContain(secret);
      }),
    );
  });
});
