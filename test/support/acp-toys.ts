import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Programs that behave like an ACP agent at its first request, or deliberately do not. */

const answer = `let text = "";
process.stdin.on("data", (chunk) => {
  text += chunk;
  if (!text.includes("\\n")) return;
  const { id, method, params } = JSON.parse(text);
  if (method !== "initialize" || params.protocolVersion !== 1) process.exit(9);
  reply(id);
});
const write = (value) => process.stdout.write(JSON.stringify(value) + "\\n");
`;
const stays = "setInterval(() => undefined, 60_000);\n";

export const toys = {
  answers: `${answer}const reply = (id) => {
  process.stdout.write("Welcome!\\n\\n");
  write({ jsonrpc: "2.0", method: "note", params: {} });
  write({ jsonrpc: "2.0", id, result: {
    protocolVersion: 1,
    agentInfo: { name: "toy", title: "Toy Agent", version: "1.2.3" },
    agentCapabilities: { loadSession: true, sessionCapabilities: { resume: {}, fork: null } },
    authMethods: [{ id: "key", name: "API key" }, { id: "web" }, 7],
  } });
};`,
  /** Sends the minimum allowed response in two pieces. */
  terse: `${answer}const reply = (id) => {
  const text = JSON.stringify({ jsonrpc: "2.0", id, result: { protocolVersion: 1 } }) + "\\n";
  process.stdout.write(text.slice(0, 10), () => setImmediate(() => process.stdout.write(text.slice(10))));
};`,
  refuses: `${answer}const reply = (id) => write({ jsonrpc: "2.0", id, error: { code: -32603, message: "no licence" } });`,
  newer: `${answer}const reply = (id) => write({ jsonrpc: "2.0", id, result: { protocolVersion: 99 } });`,
  nonsense: `${answer}const reply = (id) => write({ jsonrpc: "2.0", id, result: null });`,
  garbage: `process.stdout.write("usage: toy [--acp]\\n" + "x".repeat(1e6));${stays}`,
  exits: `process.stderr.write("key " + process.env.TOY_KEY + " is not known\\n"); process.exitCode = 3;`,
  hangs: `process.on("SIGTERM", () => undefined);
const { spawn } = require("node:child_process");
note(spawn(process.execPath, ["-e", ${JSON.stringify(stays)}], { stdio: "ignore" }).pid);${stays}`,
} as const;

/**
 * Writes a program with this name and behavior. Each of its processes records its PID. The last one does so when
 * everything has started.
 */
export function writeToy(folder: string, name: string, toy: keyof typeof toys): string {
  const script = join(folder, `${name}.cjs`);
  const file = JSON.stringify(pidFile(folder, name));
  const noted = `const note = (pid) => require("node:fs").appendFileSync(${file}, pid + "\\n");`;
  writeFileSync(script, `${noted}\n${toys[toy]}\nnote(process.pid);\n`);
  const program = join(folder, name);
  writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${script}" "$@"\n`);
  chmodSync(program, 0o755);
  return program;
}

/** Returns all processes of the program that were ever started. */
export function toyPids(folder: string, name: string): number[] {
  const file = pidFile(folder, name);
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").map(Number) : [];
}

function pidFile(folder: string, name: string): string {
  return join(folder, `${name}.pids`);
}
