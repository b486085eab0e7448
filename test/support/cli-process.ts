import type { ChildProcess, SpawnOptions } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { skeinProgram } from "./programs.ts";

/** A separate process, with its output so far. */
export class Started {
  readonly child: ChildProcess;
  out = "";
  err = "";
  readonly #closed: Promise<unknown[]>;
  #news = Promise.withResolvers<void>();

  constructor(
    args: readonly string[],
    env: NodeJS.ProcessEnv = {},
    { openFiles, ...where }: Pick<SpawnOptions, "cwd" | "detached"> & { readonly openFiles?: number } = {},
  ) {
    const all: NodeJS.ProcessEnv = { ...process.env, NO_COLOR: "1", ...env };
    for (const name of ["FORCE_COLOR", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"]) delete all[name];
    const limited = ["-c", `ulimit -n ${openFiles}; exec "$0" "$@"`, process.execPath, ...args];
    const [command, given] = openFiles === undefined ? [process.execPath, args] : ["/bin/sh", limited];
    this.child = spawn(command, given, { ...where, env: all, stdio: "pipe" });
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.out += text;
      this.#tell();
    });
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.err += text;
      this.#tell();
    });
    // A process that has exited reads no more input, which its exit shows.
    this.child.stdin?.on("error", () => undefined);
    this.#closed = once(this.child, "close");
  }

  #tell(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }

  write(text: string): void {
    this.child.stdin?.write(text);
  }

  endInput(): void {
    this.child.stdin?.end();
  }

  /** Waits until it has printed something, on either stream. */
  async until(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(`${this.out}\n${this.err}`);
      if (found !== null) return found;
      const ended = await Promise.race([this.#closed.then(() => "ended" as const), this.#news.promise]);
      if (ended === "ended" && pattern.exec(`${this.out}\n${this.err}`) === null)
        throw new Error(`It ended without ${pattern}:\n${this.out}\n${this.err}`);
    }
  }

  /** Its exit code, or the signal that ended it. */
  async end(): Promise<unknown> {
    const [code, signal] = await this.#closed;
    return code ?? signal;
  }
}

/** The command line in a separate process. */
export function startCli(dir: string, ...args: readonly string[]): Started {
  return new Started([skeinProgram, ...args], { SKEIN_DIR: dir });
}
