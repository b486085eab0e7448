import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isAlive, isWardenOf, marked } from "../../../test/support/marked.ts";
import { soon } from "../../../test/support/soon.ts";
import type { ChildProcess } from "./start-process.ts";
import { startCommand } from "./start-process.ts";

let folder = "";
const running: ChildProcess[] = [];
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "start-command-")));
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop()));
  rmSync(folder, { recursive: true, force: true });
});

const own = { PATH: process.env.PATH, HOME: "/nowhere", LANG: "C", OPENAI_API_KEY: "hidden" };

async function start(command: string, args: readonly string[] = [], env: Record<string, string> = {}) {
  const child = await startCommand({ command, args, env, cwd: folder }, { env: own });
  running.push(child);
  return child;
}
const shell = (script: string, ...args: string[]) => start("sh", ["-c", script, "sh", ...args]);
/** A test program. `say` sends a report to the test, and `stay` keeps the program alive. */
const node = (script: string) =>
  start(process.execPath, [
    "-e",
    `const say = (what) => process.stdout.write(what + "\\n"); const stay = () => setInterval(() => undefined, 60_000);
     const { spawn } = require("node:child_process"); ${script}`,
  ]);

async function line({ stdout }: Pick<ChildProcess, "stdout">): Promise<string> {
  let said = "";
  while (!said.includes("\n")) said += String((await once(stdout, "data"))[0]);
  return said.trim();
}

const isLinux = process.platform === "linux";

describe("a child process", () => {
  test("gets PATH, HOME, LANG, the configured variables and its mark, and nothing else", async () => {
    const child = await start(process.execPath, ["-e", "process.stdout.write(JSON.stringify(process.env))"], {
      OWN: "1",
      LANG: "de",
      SKEIN_CHILD: "forged",
    });
    const { __CF_USER_TEXT_ENCODING: _, ...given } = JSON.parse(await text(child.stdout));
    expect(given).toEqual({
      PATH: own.PATH,
      HOME: "/nowhere",
      LANG: "de",
      OWN: "1",
      SKEIN_CHILD: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
  });

  test("runs in its folder with unchanged arguments", async () => {
    const child = await shell('pwd; printf "%s|" "$@"', "a b", "", "$HOME", "'", "*");
    expect(await text(child.stdout)).toBe(`${folder}\na b||$HOME|'|*|`);
  });

  test("receives input and its end", async () => {
    const child = await shell("cat; echo over");
    child.stdin.write("one\n");
    expect(await line(child)).toBe("one");
    child.stdin.end("two\n");
    expect(await text(child.stdout)).toBe("two\nover\n");
    expect(await child.ended).toEqual({ code: 0, signal: null });
  });

  test("reports how it ended, and the end of its stderr on one line", async () => {
    const failed = await shell('printf "no\\033[1m\\nlicence" >&2; exit 7');
    expect(await failed.ended).toEqual({ code: 7, signal: null });
    await failed.closed();
    expect(failed.report()).toBe("it exited with code 7; its stderr ends with: no\\u001b[1m\\u000alicence");
    const killed = await shell("kill -9 $$");
    expect(await killed.ended).toEqual({ code: null, signal: "SIGKILL" });
    expect(killed.report()).toBe("it was killed by SIGKILL");
    const long = await shell("yes ü | head -c 300000 >&2; echo last >&2; cat");
    expect(long.report()).not.toContain("ended");
    await soon(() => long.report()).toMatch(/^its stderr ends with: .*last$/);
    expect(long.report().length).toBeLessThan(5000);
  });
});

test.runIf(isLinux)("does not wait for last output if an unrelated process holds its pipes", async () => {
  // The process is unrelated once it reports: it has left the group and removed the mark. Only then may the shell exit.
  const unrelated = `setsid env -i PATH="$PATH" sh -c 'echo $$; exec sleep 600'`;
  const child = await shell(`${unrelated} & read -r _; echo bye >&2`);
  const stranger = Number(await line(child));
  child.stdin.end("\n");
  await child.closed();
  expect(isAlive(stranger)).toBe(true);
  process.kill(stranger, "SIGKILL");
  expect(child.report()).toBe("it exited with code 0; its stderr ends with: bye");
});

describe("leftover processes", () => {
  test("stop sends SIGTERM, may be repeated, and is harmless afterwards", async () => {
    const child = await node(`process.on("SIGTERM", () => process.exit(5)); stay(); say("up");`);
    await line(child);
    await Promise.all([child.stop(), child.stop()]);
    expect(await child.ended).toEqual({ code: 5, signal: null });
    await child.stop();
    expect(isAlive(child.pid)).toBe(false);
  });

  test("a process that ignores the signal is killed, with everything it started", async () => {
    const child = await shell(`trap '' TERM; sleep 600 & echo $!; while :; do wait; sleep 600; done`);
    const grandchild = Number(await line(child));
    await child.stop();
    expect(await child.ended).toEqual({ code: null, signal: "SIGKILL" });
    expect([child.pid, grandchild].filter(isAlive)).toEqual([]);
  });

  test("when a process exits by itself, the rest of its group is killed", async () => {
    const child = await shell(`trap '' TERM; sleep 600 & echo $!; exit 3`);
    const grandchild = Number(await line(child));
    expect(await child.ended).toEqual({ code: 3, signal: null });
    expect(isAlive(grandchild)).toBe(false);
  });

  test.runIf(isLinux)(
    "processes outside the group are found by the mark, however often they fork",
    async () => {
      const child = await node(`
      const hop = "let n = 0; process.on('SIGTERM', () => 0); setInterval(() => { if (n++ < 20) require('child_process').spawn('sleep', ['600'], { detached: true, stdio: 'ignore' }).unref() }, 10)";
      const one = spawn(process.execPath, ["-e", hop], { detached: true, stdio: "ignore" });
      process.on("SIGTERM", () => 0); stay(); say(process.env.SKEIN_CHILD + " " + one.pid);`);
      const [mark = "", pid] = (await line(child)).split(" ");
      await soon(() => marked(mark).length).toBeGreaterThan(4);
      await child.stop();
      expect(isAlive(Number(pid))).toBe(false);
      expect(marked(mark)).toEqual([]);
    },
  );

  test.runIf(isLinux)("processes outside the group are killed when the agent exits by itself", async () => {
    const child = await node(
      `const one = spawn("sleep", ["600"], { detached: true, stdio: "inherit" }); one.unref();
       say(process.env.SKEIN_CHILD); one.on("spawn", () => process.exit(0));`,
    );
    const mark = await line(child);
    await child.ended;
    expect(marked(mark)).toEqual([]);
  });

  test.runIf(isLinux)("[MCT11] when our process is killed, all child processes end", async () => {
    const program = join(folder, "host.ts");
    const module = fileURLToPath(new URL("./start-process.ts", import.meta.url));
    const agent = `trap '' TERM; sleep 600 & setsid sleep 600 & echo $SKEIN_CHILD; while :; do sleep 600; done`;
    writeFileSync(
      program,
      `import { startCommand } from ${JSON.stringify(module)};
       const spec = { command: "sh", args: ["-c", ${JSON.stringify(agent)}], env: {}, cwd: "/" };
       const child = await startCommand(spec, { env: process.env });
       child.stdout.pipe(process.stdout);`,
    );
    const host = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "inherit"] });
    const mark = await line(host);
    // The agent, its two sleeping processes, the one that its loop waits for, and the warden.
    await soon(() => marked(mark).length).toBe(5);
    host.kill("SIGKILL");
    await once(host, "exit");
    await soon(() => marked(mark)).toEqual([]);
  });

  test.runIf(isLinux)("[MCT11] an agent without its warden does not survive", async () => {
    const child = await shell(
      `setsid sleep 600 & echo $SKEIN_CHILD; trap '' TERM; while :; do sleep 600; done`,
    );
    const mark = await line(child);
    await soon(() => marked(mark).length).toBe(4);
    const warden = marked(mark).find((pid) => isWardenOf(pid, mark)) ?? 0;
    process.kill(warden, "SIGKILL");
    expect(await child.ended).toEqual({ code: null, signal: "SIGKILL" });
    expect(marked(mark)).toEqual([]);
  });
});
