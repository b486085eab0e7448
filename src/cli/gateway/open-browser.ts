import { spawn } from "node:child_process";

/**
 * Starts a program without waiting for it to exit. If it cannot be started or fails immediately, resolves to the
 * reason.
 */
export type StartProgram = (command: string, args: readonly string[]) => Promise<string | null>;

/**
 * How long to wait for a program to report that it has no browser. Some programs keep running as long as the browser
 * does.
 */
const settleMs = 2000;

/** Opens an address in the default browser. Resolves to the reason if that fails, otherwise to `null`. */
export function openBrowser(url: string, start: StartProgram = startProgram): Promise<string | null> {
  switch (process.platform) {
    case "darwin":
      return start("open", [url]);
    case "win32":
      return start("rundll32", ["url.dll,FileProtocolHandler", url]);
    default:
      return start("xdg-open", [url]);
  }
}

const startProgram: StartProgram = (command, args) => {
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const child = spawn(command, args, { stdio: "ignore", detached: true });
  const timer = setTimeout(() => resolve(null), settleMs);
  child.once("error", ({ message }) => resolve(message));
  child.once("exit", (code) => resolve(code === 0 ? null : `${command} exited with status ${code}`));
  child.unref();
  return promise.finally(() => clearTimeout(timer));
};
