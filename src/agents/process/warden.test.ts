import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { afterEach, expect, test } from "vitest";
import { marked } from "../../../test/support/marked.ts";
import { findCommand } from "./find-command.ts";
import { wardenScript } from "./warden.ts";

const shells: [name: string, command: string, args: string[]][] = [];
for (const [command, ...args] of [
  ["sh"],
  ["dash"],
  ["bash", "--posix"],
  ["bash"],
  ["busybox", "sh"],
  ["ksh"],
  ["zsh"],
]) {
  const found = await findCommand(command as string, process.env, "/");
  if (found !== null) shells.push([[command, ...args].join(" "), found, args]);
}

const started: ChildProcess[] = [];
afterEach(async () => {
  const left = started
    .splice(0)
    .filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
  await Promise.all(
    left.map((each) => {
      each.kill("SIGKILL");
      return once(each, "exit");
    }),
  );
});

const mark = randomUUID();
/** Reacts to SIGTERM immediately, without waiting for anything else to finish. */
const heeding = "trap 'exit 9' TERM; echo; sleep 600 & wait";
async function group(...command: [string, ...string[]]) {
  const [program, ...args] = command;
  const env = { PATH: process.env.PATH, SKEIN_CHILD: mark };
  const child = spawn(program, args, { detached: true, env, stdio: ["ignore", "pipe", "ignore"] });
  started.push(child);
  await once(child.stdout, "data");
  return child;
}
async function warden([, command, args]: (typeof shells)[number], lifeline: string) {
  const child = spawn(command, [...args, "-c", wardenScript, "warden", mark], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  started.push(child);
  let said = "";
  for (const pipe of [child.stdout, child.stderr])
    pipe.on("data", (chunk: Buffer) => {
      said += chunk.toString("utf8");
    });
  child.stdin.end(lifeline);
  const [code] = await once(child, "exit");
  return { code, said };
}
test.each(shells)(
  "[MCT11] the warden ends a group under %s: first with SIGTERM, then with SIGKILL",
  async (...shell) => {
    const polite = await group("sh", "-c", heeding);
    const left = once(polite, "exit");
    expect(await warden(shell, `group ${polite.pid}\n`)).toEqual({ code: 0, said: "" });
    expect(await left).toEqual([9, null]);
    const deaf = await group("sh", "-c", "trap '' TERM; echo; while :; do sleep 0.1; done");
    const killed = once(deaf, "exit");
    expect(await warden(shell, `group ${deaf.pid}\n`)).toEqual({ code: 0, said: "" });
    expect(await killed).toEqual([null, "SIGKILL"]);
    if (process.platform === "linux") expect(marked(mark)).toEqual([]);
  },
);

test.each(shells)(
  "[MCT11] the warden kills leftovers of an agent that has exited at once under %s",
  async (...shell) => {
    const polite = await group("sh", "-c", heeding);
    const left = once(polite, "exit");
    await warden(shell, `group ${polite.pid}\nnow\n`);
    expect(await left).toEqual([null, "SIGKILL"]);
  },
);

test.runIf(process.platform === "linux").each(shells)(
  "[MCT11] the warden finds an agent that was never registered by its mark under %s, and no other process",
  async (...shell) => {
    const agent = await group("sh", "-c", "echo; sleep 600");
    const stranger = spawn(process.execPath, ["-e", "setInterval(() => 0, 60_000)", mark]);
    started.push(stranger);
    const left = once(agent, "exit");
    expect(await warden(shell, "")).toEqual({ code: 0, said: "" });
    expect(await left).toEqual([null, "SIGKILL"]);
    expect(marked(mark)).toEqual([stranger.pid]);
    expect(stranger.exitCode ?? stranger.signalCode).toBe(null);
  },
);
