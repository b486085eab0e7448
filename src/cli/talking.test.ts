import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { Check } from "typebox/value";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { run } from "../../test/support/cli.ts";
import { withRuns } from "../../test/support/cli-runs.ts";
import { pngOf } from "../../test/support/images.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import { AcceptedSchema, RunListSchema, RunSchema, SentSchema } from "../protocol/runs.ts";
import type { Terminal } from "./output/terminal.ts";

let home = "";
let count = 0;

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "skein-talk-"));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Returns a separate folder that does not exist yet. */
function folder() {
  count += 1;
  const dir = join(home, String(count));
  const call = (args: readonly string[], more: Partial<Terminal> = {}) =>
    run(args, { cwd: home, env: { SKEIN_DIR: dir }, ...more });
  const piped = (text: string): Partial<Terminal> => ({
    input: () => ({ stream: Readable.from([text]), typed: false }),
  });
  return { dir, call, piped };
}

const escapes = "\u001b]0;owned\u0007\u001b[2J\u009b31m";

describe("send", () => {
  test("a key creates its session, and every reference finds it", async () => {
    const { call } = folder();
    expect((await call(["send", "agent:main:session:porto", "repeat one"])).out).toBe("one\n");
    await call(["sessions", "rename", "porto", "sea"]);
    for (const ref of ["porto", "session:porto", "sea", "por"])
      expect(await call(["send", ref, "repeat", "two", "words"])).toMatchObject({
        out: "two words\n",
        exit: 0,
      });
    const { out } = await call(["sessions", "ls", "--json"]);
    expect(JSON.parse(out).count).toBe(1);
  });

  test.each([
    ["an unknown name", ["send", "nobody", "hello"], 1],
    ["a file", ["send", "./trip.jsonl", "hello"], 2],
    ["no text", ["send", "main"], 2],
    ["another queue mode", ["send", "main", "hello", "--queue", "later"], 2],
    ["a malformed model", ["send", "main", "hello", "--model", "gpt"], 2],
    ["an invalid image", ["send", "main", "hello", "--image", "note.txt"], 2],
    ["a missing image", ["send", "main", "hello", "--image", "gone.png"], 1],
  ])("%s is refused, and no folder is created", async (_, args, exit) => {
    writeFileSync(join(home, "note.txt"), "no image");
    const { dir, call } = folder();
    const done = await call(args);
    expect(done).toMatchObject({ out: "", exit });
    expect(done.err).toMatch(/^error: /);
    expect(existsSync(dir)).toBe(false);
  });

  test("no input at all is refused", async () => {
    const { call } = folder();
    expect(await call(["send", "main", " "])).toMatchObject({ out: "", exit: 2 });
  });

  test("- reads the message from the input, and images are attached", async () => {
    const { call, piped } = folder();
    writeFileSync(join(home, "dot.png"), pngOf(2, 2));
    const done = await call(["send", "main", "-", "--image", "dot.png"], piped("repeat from\n"));
    expect(done).toMatchObject({ out: "from\n", exit: 0 });
    const shown = await call(["sessions", "show", "main", "--json"]);
    expect(shown.out).toContain('"image"');
  });

  test("[CLI36] prints one object, whether the run succeeded or not", async () => {
    const { call } = folder();
    const fine = await call(["send", "main", "repeat yes", "--json"]);
    expect(Check(SentSchema, JSON.parse(fine.out))).toBe(true);
    expect(JSON.parse(fine.out)).toMatchObject({ finished: true, state: "ok", reply: "yes" });
    const failed = await call(["send", "main", "fail", "--json"]);
    expect(failed).toMatchObject({ err: "", exit: 1 });
    expect(Check(SentSchema, JSON.parse(failed.out))).toBe(true);
    expect(JSON.parse(failed.out)).toMatchObject({ state: "error", error: { code: "model_failed" } });
    const told = await call(["send", "session:other", "fail"]);
    expect(told).toMatchObject({ out: "", exit: 1 });
    expect(told.err).toMatch(/^error: .*\[model_failed\] See skein runs show \S+\n$/);
  });

  test("[CLI36] streams to a terminal, with tools next to the reply", async () => {
    const { call } = folder();
    const pieces: string[] = [];
    const out = (text: string) => void pieces.push(text);
    await call(["send", "main", "describe the gardens of Kyoto"], { isWatched: true, out });
    expect(pieces.length).toBeGreaterThan(2);
    expect(pieces.join("")).toMatch(/Kyoto.*\n$/s);
  });

  test("[CLI36] waits until everything that it started has ended", async () => {
    const { dir, call } = folder();
    await call(["sessions", "new", "helper"]);
    // The turn waits for the approval, no matter how long that takes.
    writeFileSync(join(dir, "skein.yaml"), "agents: { main: { tools: { ask: [sessions_list] } } }\n");
    const done = call(["send", "main", "list the sessions", "--json"]);
    const listed = async () => JSON.parse((await call(["runs", "ls", "--json"])).out);
    await expect.poll(async () => (await listed()).approvals.length).toBe(1);
    const { runs: open, approvals } = await listed();
    const [{ runId, rootId }] = open;
    await withRuns(dir, async (runs, store) => {
      const [helper] = await store.sessions.find({}, { by: "sessionId", sessionId: "helper" });
      if (helper === undefined) throw new Error("there is no helper");
      const message = { role: "user" as const, content: "be slow for 4 seconds" };
      const root = { rootId, hops: 1 };
      await runs.accept({ session: sessionRefOf(helper), kind: "send", message, root, startedBy: runId });
    });
    await call(["runs", "approve", approvals[0].approvalId]);
    expect((await done).exit).toBe(0);
    const { runs } = JSON.parse((await call(["runs", "ls", "--json"])).out);
    expect(runs.map(({ state }: { state: string }) => state)).toEqual(["ok", "ok"]);
  });

  test("shows waiting input after the conversation until it is answered", async () => {
    const { call } = folder();
    await call(["send", "main", "repeat first"]);
    const { out } = await call(["send", "main", "repeat second", "--no-wait", "--json"]);
    const { runId } = JSON.parse(out);
    const shown = JSON.parse((await call(["sessions", "show", "main", "--json"])).out);
    expect(shown.messages).toHaveLength(2);
    expect(shown.pending).toMatchObject([{ runId, role: "user", content: "repeat second", state: "queued" }]);
    expect((await call(["sessions", "show", "main"])).out).toContain(`waiting as run ${runId}`);
    await call(["send", "main", "repeat third", "--queue", "followup"]);
    const after = JSON.parse((await call(["sessions", "show", "main", "--json"])).out);
    expect(after.pending).toEqual([]);
    expect(after.messages).toHaveLength(6);
  });

  test("a list shows the activity of a session and its duration", async () => {
    const { call } = folder();
    await call(["send", "main", "repeat first"]);
    const rows = async () => JSON.parse((await call(["sessions", "ls", "--json"])).out).sessions;
    expect(await rows()).toMatchObject([{ status: "idle", runtimeMs: expect.any(Number) }]);
    expect((await call(["sessions", "ls"])).out).not.toContain("STATUS");
    await call(["send", "main", "repeat second", "--no-wait"]);
    expect(await rows()).toMatchObject([{ status: "queued" }]);
    expect((await call(["sessions", "ls"])).out).toMatch(/STATUS[\s\S]*queued/);
    await call(["send", "main", "fail"]);
    expect(await rows()).toMatchObject([{ status: "error" }]);
  });

  test("[CLI37] repeating a key returns the same run, and --no-wait does not wait for it", async () => {
    const { call } = folder();
    const left = await call(["send", "main", "repeat once", "--key", "k1", "--no-wait", "--json"]);
    const accepted = JSON.parse(left.out);
    expect(Check(AcceptedSchema, accepted)).toBe(true);
    const open = JSON.parse((await call(["runs", "ls", "--json"])).out);
    expect(Check(RunListSchema, open)).toBe(true);
    expect(open.runs).toMatchObject([{ runId: accepted.runId, state: "queued", preview: "repeat once" }]);
    const again = await call(["send", "main", "repeat once", "--key", "k1", "--json"]);
    expect(JSON.parse(again.out)).toMatchObject({ runId: accepted.runId, reply: "once" });
    const third = await call(["send", "main", "repeat once", "--key", "k1"]);
    expect(third).toMatchObject({ out: "once\n", exit: 0 });
    expect(JSON.parse((await call(["runs", "ls", "--json"])).out).count).toBe(1);
    const shown = JSON.parse((await call(["runs", "show", accepted.runId, "--json"])).out);
    expect(Check(RunSchema, shown)).toBe(true);
  });

  test("[CLI38] the first Ctrl-C aborts, and does not catch the second", async () => {
    const { call } = folder();
    let interrupt: () => void = () => undefined;
    let isListening = false;
    const onInterrupt = (listener: () => void) => {
      interrupt = listener;
      isListening = true;
      return () => {
        isListening = false;
      };
    };
    const done = call(["send", "main", "be slow for 300 seconds", "--json"], { onInterrupt });
    const running = async () => (await call(["runs", "ls", "--json"])).out.includes('"running"');
    await expect.poll(running).toBe(true);
    expect(isListening).toBe(true);
    interrupt();
    expect(isListening).toBe(false);
    const { out, exit } = await done;
    expect({ state: JSON.parse(out).state, exit }).toEqual({ state: "aborted", exit: 1 });
  });

  test("[ATK18] streamed text of a session cannot control the terminal", async () => {
    const { call, piped } = folder();
    let all = "";
    const write = (text: string) => {
      all += text;
    };
    const watched = { isWatched: true, redraws: true, out: write, err: write };
    await call(["send", "main", `repeat ${escapes} first\r\nsecond`], watched);
    await call(["chat", "main"], {
      ...piped(`repeat ${escapes} third\n/branch ${escapes}\n/${escapes}\n`),
      ...watched,
    });
    const id = JSON.parse((await call(["runs", "ls", "--json"])).out).runs[0].runId;
    await call(["runs", "ls"], watched);
    await call(["runs", "show", id], watched);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are looked for
    expect(all).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    expect(all).toContain("\\u001b]0;owned");
    expect(all).toContain("third");
  });
});

describe("chat with piped lines", () => {
  test("each line is a turn, and the end waits for the last one", async () => {
    const { call, piped } = folder();
    const done = await call(["chat"], piped("repeat one\n\nrepeat two\nrepeat three"));
    expect(done).toMatchObject({ out: "one\ntwo\nthree\n", err: "", exit: 0 });
  });

  test("each answer begins on its own line", async () => {
    const { call, piped } = folder();
    await call(["send", "main", "be slow for 1 second", "--no-wait"]);
    await call(["send", "main", "repeat steered", "--queue", "steer", "--no-wait"]);
    const { out } = await call(["chat"], piped("repeat last\n"));
    const lines = out.trimEnd().split("\n");
    expect(lines.at(-1)).toMatch(/last|steered/);
    expect(lines.length).toBeGreaterThan(1);
  });

  test("reports a failed turn, continues with the rest, and exits with a failure", async () => {
    const { call, piped } = folder();
    const done = await call(["chat"], piped("fail\n/branch\nrepeat on\n"));
    expect(done).toMatchObject({ out: "on\n", exit: 1 });
    expect(done.err).toMatch(/error: .*\[model_failed\]/);
  });

  test("has no JSON output, and shows thinking on request", async () => {
    const { call, piped } = folder();
    expect((await call(["chat", "--json"], piped(""))).exit).toBe(2);
    const shown = await call(["chat", "--thinking"], piped("think about Kyoto\n"));
    const hidden = await call(["chat"], piped("think about Kyoto\n"));
    expect(shown.out.split("\n").length).toBeGreaterThan(hidden.out.split("\n").length);
  });

  test("slash commands do what they say", async () => {
    const { call, piped } = folder();
    const lines = [
      "/branch",
      "repeat one",
      "repeat two",
      "/branch",
      "repeat three",
      "/tree",
      "/model rehearsal/basic",
      "/model",
      "/model nonsense",
      "/compact",
      "/fork",
      "/status",
      "/new",
      "//repeat",
      "/nonsense",
      "/help",
      "/quit",
      "repeat never",
    ];
    const { out, err } = await call(["chat", "session:talk"], piped(lines.join("\n")));
    expect(err).toContain("session:talk has no messages yet");
    expect(out).toMatch(/2 branches/);
    expect(out).not.toContain("--all");
    expect(err).toContain("now using rehearsal/basic");
    expect(err).toContain("model: rehearsal/basic");
    expect(err).toMatch(/error: .*nonsense/);
    expect(err).toContain("not compacted: everything is recent enough to keep");
    expect(err).toMatch(/now in session:\S+, forked from session:talk/);
    expect(err).toContain("has been reset");
    expect(out).toContain("“/repeat”");
    expect(err).toContain("unknown command /nonsense; /help lists the commands");
    for (const name of ["/branch", "/fork", "/tree", "/compact", "/status", "/new", "/model", "/quit"])
      expect(out).toContain(`  ${name}`);
    expect(out).not.toContain("never");
    expect((await call(["runs", "ls", "--json"])).out).not.toContain("never");
    const { sessions } = JSON.parse((await call(["sessions", "ls", "--json"])).out);
    expect(sessions).toHaveLength(3);
    const talk = sessions.find(({ key }: { key: string }) => key === "agent:main:session:talk");
    expect(talk.model).toBe("rehearsal/basic");
  });
});
