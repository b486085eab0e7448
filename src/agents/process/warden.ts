import { spawn } from "node:child_process";
import type { Environment } from "./contract.ts";
import { wardenScript } from "./warden-script.ts";

/** Longer than any warden takes; one that was stopped or hangs is not waited for. */
const patienceMs = 20_000;

/** What ends a process and all that it has started, also when our own process is killed. */
export interface Warden {
  /** The group that it answers for. */
  watch(group: number): void;
  /** `gently`: SIGTERM first, and 2 s. Resolves when nothing is left; `false`: it was ended before it was done. */
  end(how: "gently" | "now"): Promise<boolean>;
  /** It was ended by somebody else. */
  onLost(listener: () => void): void;
}

/**
 * Starts a warden for everything with this mark: a shell of a few hundred kilobytes, in a session of its own so that no
 * Ctrl-C reaches it, that holds nothing of ours but the lifeline.
 */
export async function openWarden(mark: string, own: Environment): Promise<Warden> {
  const shell = spawn("/bin/sh", ["-c", wardenScript, "skein-warden", mark], {
    cwd: "/",
    env: { PATH: [own.PATH, "/usr/bin", "/bin"].filter(Boolean).join(":") },
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  let isEnding = false;
  shell.once("exit", () => resolve());
  await new Promise((started, failed) => {
    shell.once("spawn", () => started(null));
    shell.once("error", failed);
  });
  // Not before: where no file can be opened any more there are no pipes.
  const lifeline = shell.stdin;
  lifeline.on("error", () => undefined); // it has gone, which its exit tells
  return {
    watch: (group) => void lifeline.write(`group ${group}\n`),
    async end(how) {
      if (!isEnding) lifeline.end(how === "now" ? "now\n" : undefined);
      isEnding = true;
      const late = setTimeout(() => shell.kill("SIGKILL"), patienceMs);
      await gone;
      clearTimeout(late);
      return shell.exitCode === 0;
    },
    onLost: (listener) => void gone.then(() => (isEnding ? undefined : listener())),
  };
}
