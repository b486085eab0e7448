import { execFileSync } from "node:child_process";
import type { Acts, Figures, Job } from "./side.ts";

/** The command as users run it, in a new process each time. Node keeps the compiled code of the run before. */
export const acts: Acts = { command };

async function command({ folder, file = "" }: Job): Promise<Figures> {
  const run = (...args: readonly string[]) => {
    const started = performance.now();
    const env = { ...process.env, HOME: folder };
    const output = execFileSync(process.execPath, [file, ...args], { cwd: folder, env, encoding: "utf8" });
    return { ms: performance.now() - started, output };
  };
  const { ms, output } = run("sessions", "ls", "--dir", folder);
  return { ms, bootMs: run("--version").ms, rows: output.trim().split("\n").length };
}
