import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

/** The root folder of the checkout. */
export const root = fileURLToPath(new URL("..", import.meta.url));

/** Runs a project command and prints its outcome. If the command fails, prints its output and exits. */
export async function runStep(name: string, command: string, args: readonly string[]): Promise<string> {
  const started = performance.now();
  const child = spawn(command, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  const status = new Promise<unknown>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", resolve);
  });
  const [output, problems, result] = await Promise.all([text(child.stdout), text(child.stderr), status]);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (result === 0) {
    console.log(`ok    ${name} (${seconds} s)`);
    return output;
  }
  console.log(
    `FAIL  ${name} (${seconds} s)\n${output}${problems}${typeof result === "string" ? result : ""}`,
  );
  process.exit(1);
}
