import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fileBoundary } from "../../../test/support/file-boundary.ts";
import { isAlive, marked } from "../../../test/support/marked.ts";
import { soon } from "../../../test/support/soon.ts";
import type { TerminalRequest } from "./terminals.ts";
import { Terminals } from "./terminals.ts";

let folder = "";
let cwd = "";
let terminals: Terminals;
const own = { PATH: process.env.PATH, HOME: "/nowhere", LANG: "C", OPENAI_API_KEY: "hidden" };
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "terminals-")));
  cwd = join(folder, "cwd");
  mkdirSync(join(cwd, "deep"), { recursive: true });
  symlinkSync("deep", join(cwd, "to-deep"));
  symlinkSync("..", join(cwd, "up"));
  terminals = new Terminals({ cwd, owner: { userId: null, agentId: "main" }, files: fileBoundary() }, own, {
    OWN: "1",
    BOTH: "agent",
  });
});
afterEach(async () => {
  await terminals.close();
  rmSync(folder, { recursive: true, force: true });
});

async function ran(request: TerminalRequest) {
  const terminal = await terminals.create(request);
  const exit = await terminals.waitForExit(terminal);
  return { ...terminals.output(terminal), exit };
}
const script = (text: string, more: Partial<TerminalRequest> = {}): TerminalRequest => ({
  command: "sh",
  args: ["-c", text],
  ...more,
});
const node = (text: string): TerminalRequest => ({ command: process.execPath, args: ["-e", text] });

describe("a terminal", () => {
  test("runs a command and reports its output in order, and how it ended", async () => {
    const exitStatus = { exitCode: 3, signal: null };
    expect(await ran(script("for i in 1 2 3; do echo out $i; echo err $i >&2; done; exit 3"))).toEqual({
      output: "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n",
      truncated: false,
      exitStatus,
      exit: exitStatus,
    });
    const killed = { exitCode: null, signal: "SIGKILL" };
    expect(await ran(script("printf ä; kill -9 $$"))).toMatchObject({ output: "ä", exitStatus: killed });
  });

  test.each<[TerminalRequest, string]>([
    [{ command: "printf", args: ["%s|", "a b", "$HOME", "'"] }, "a b|$HOME|'|"],
    [{ command: "echo a b | tr a-z A-Z; echo $HOME >&2" }, "A B\n/nowhere\n"],
    [{ command: "./my tool" }, "mine\n"],
    [{ command: "cat", args: [] }, ""],
  ])("%j: a program with its arguments, or a line for the shell", async (request, output) => {
    writeFileSync(join(cwd, "my tool"), "#!/bin/sh\necho mine\n", { mode: 0o755 });
    expect(await ran(request)).toMatchObject({ output, exit: { exitCode: 0 } });
  });

  test("has PATH, HOME, LANG, the configured variables and the requested ones", async () => {
    const env = [
      { name: "BOTH", value: "asked" },
      { name: "ASKED", value: "a=b" },
      { name: "SKEIN_CHILD", value: "forged" },
    ];
    const { output } = await ran({ ...node("process.stdout.write(JSON.stringify(process.env))"), env });
    // Variables that the shell adds are not counted.
    const { PWD: _, OLDPWD: __, SHLVL: ___, _: ____, ...given } = JSON.parse(output);
    const mark = expect.stringMatching(/^[0-9a-f-]{36}$/);
    const asked = { OWN: "1", BOTH: "asked", ASKED: "a=b", SKEIN_CHILD: mark };
    expect(given).toEqual({ PATH: own.PATH, HOME: "/nowhere", LANG: "C", ...asked });
  });

  test.each([
    [undefined, ""],
    [null, ""],
    ["@", ""],
    ["@/deep", "/deep"],
    ["@/to-deep", "/deep"],
    ["@/up/cwd", ""],
  ])("in the folder %s runs in %j", async (asked, where) => {
    const { output } = await ran(
      script("pwd", asked === undefined ? {} : { cwd: asked?.replace("@", cwd) ?? null }),
    );
    expect(output).toBe(`${cwd}${where}\n`);
  });

  test.each<[string, Partial<TerminalRequest>, string]>([
    ["a folder outside", { cwd: "/" }, "/ is outside this session's working directory "],
    ["a folder outside, through a link", { cwd: "@/up" }, "is outside"],
    ["a folder outside, through ..", { cwd: "@/deep/../.." }, "is outside"],
    ["not an absolute path", { cwd: "deep" }, "deep is not the absolute path of a folder"],
    ["a missing folder", { cwd: "@/none" }, "is not the absolute path of a folder"],
    [
      "a missing program",
      { command: "no-such-program" },
      'the command "no-such-program" was not found on PATH',
    ],
    ["nothing", { command: " ", args: [] }, "was not found"],
    [
      "an invalid variable",
      { env: [{ name: "A=B", value: "" }] },
      '"A=B" is not a valid environment variable name',
    ],
  ])("%s is refused", async (_, more, why) => {
    const request = { ...script("pwd"), ...more };
    const asked = { ...request, cwd: request.cwd?.replace("@", cwd) ?? null };
    await expect(terminals.create(asked)).rejects.toThrow(why);
  });
});

describe("its output", () => {
  test.each([
    [6, "äöüß", "öüß", true],
    [7, "äöüß", "öüß", true],
    [8, "äöüß", "äöüß", false],
    [5, "a🦆b", "🦆b", true],
    [4, "a🦆b", "b", true],
    [0, "a", "", true],
    [0, "", "", false],
    [null, "a", "a", false],
  ])("limited to %s bytes of %j is %j", async (outputByteLimit, said, output, truncated) => {
    const asked = { command: "printf", args: ["%s", said], outputByteLimit };
    expect(await ran(asked)).toMatchObject({ output, truncated });
  });

  test("keeps the last megabyte, and is always valid text", async () => {
    const most = await ran(node(`process.stdout.write("x".repeat(3_000_000) + "ä".repeat(600_000) + "end")`));
    expect(Buffer.byteLength(most.output)).toBe(1024 * 1024 - 1);
    expect(most).toMatchObject({ truncated: true, output: expect.stringMatching(/^ä+end$/) });
    const bytes = await ran({ ...script("printf '\\377\\376a'"), outputByteLimit: 4 });
    expect(bytes.output).toBe("\ufffda");
  });

  test("can be read while it runs, without half characters", async () => {
    const go = join(cwd, "go");
    const text = `printf '\\303\\244\\303'; while ! test -e '${go}'; do sleep 0.05; done; printf '\\266'`;
    const terminal = await terminals.create(script(text));
    await soon(() => terminals.output(terminal)).toEqual({ output: "ä", truncated: false });
    writeFileSync(go, "");
    await terminals.waitForExit(terminal);
    expect(terminals.output(terminal).output).toBe("äö");
  });
});

describe("its end", () => {
  test("kill stops it with everything it started, and keeps its output", async () => {
    const terminal = await terminals.create(script("sleep 600 & echo $!; wait"));
    await soon(() => terminals.output(terminal).output).toMatch(/\d+\n/);
    const pid = Number(terminals.output(terminal).output);
    await terminals.kill(terminal);
    expect(isAlive(pid)).toBe(false);
    expect(terminals.output(terminal)).toMatchObject({
      output: `${pid}\n`,
      exitStatus: { signal: "SIGTERM" },
    });
    await terminals.kill(terminal);
    expect(await terminals.waitForExit(terminal)).toEqual({ exitCode: null, signal: "SIGTERM" });
  });

  test("release stops and forgets it; an unknown terminal is an error", async () => {
    const terminal = await terminals.create(script("echo $$; exec sleep 600"));
    await soon(() => terminals.output(terminal).output).toMatch(/\d+\n/);
    const pid = Number(terminals.output(terminal).output);
    await terminals.release(terminal);
    expect(isAlive(pid)).toBe(false);
    expect(() => terminals.output(terminal)).toThrow(`there is no terminal ${terminal.terminalId}`);
    await expect(terminals.kill({ terminalId: "no" })).rejects.toThrow("there is no terminal no");
    await expect(terminals.release(terminal)).rejects.toThrow("there is no terminal");
  });

  test("allows at most 32; close stops all of them, including those being started", async () => {
    const mark = `mark-${folder}`;
    const sleeper = script("exec sleep 600", { env: [{ name: "MINE", value: mark }] });
    const made = await Promise.allSettled(Array.from({ length: 33 }, () => terminals.create(sleeper)));
    expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(32);
    expect(made.at(-1)).toMatchObject({
      reason: { message: "there are already 32 terminals; release one first" },
    });
    await terminals.release({ terminalId: "terminal-1" });
    const late = terminals.create(sleeper);
    await terminals.close();
    await late;
    await expect(terminals.create(sleeper)).rejects.toThrow("the session has ended");
    if (process.platform === "linux") expect(marked(mark)).toEqual([]);
  });
});
