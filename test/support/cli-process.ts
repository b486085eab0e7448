import type { ChildProcess, SpawnOptions } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { skeinProgram } from "./programs.ts";

/** A command's output so far. */
export class CommandOutput {
  out = "";
  err = "";
  protected closed: Promise<unknown> = Promise.resolve();
  #news = Promise.withResolvers<void>();

  protected print(stream: "out" | "err", text: string): void {
    this[stream] += text;
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }

  /** Waits until the command has printed a text, on either stream. */
  async until(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(`${this.out}\n${this.err}`);
      if (found !== null) return found;
      const ended = await Promise.race([this.closed.then(() => "ended" as const), this.#news.promise]);
      if (ended === "ended" && pattern.exec(`${this.out}\n${this.err}`) === null)
        throw new Error(`It ended without ${pattern}:\n${this.out}\n${this.err}`);
    }
  }
}

/** A command in a separate process. */
export class Started extends CommandOutput {
  readonly child: ChildProcess;
  readonly #exit: Promise<unknown[]>;

  constructor(
    args: readonly string[],
    env: NodeJS.ProcessEnv = {},
    { openFiles, ...where }: Pick<SpawnOptions, "cwd" | "detached"> & { readonly openFiles?: number } = {},
  ) {
    super();
    const all: NodeJS.ProcessEnv = { ...process.env, NO_COLOR: "1", ...env };
    for (const name of ["FORCE_COLOR", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"]) delete all[name];
    const limited = ["-c", `ulimit -n ${openFiles}; exec "$0" "$@"`, process.execPath, ...args];
    const [command, given] = openFiles === undefined ? [process.execPath, args] : ["/bin/sh", limited];
    this.child = spawn(command, given, { ...where, env: all, stdio: "pipe" });
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => this.print("out", text));
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => this.print("err", text));
    // A process that has exited reads no more input. Its exit status reports this.
    this.child.stdin?.on("error", () => undefined);
    this.#exit = once(this.child, "close");
    this.closed = this.#exit;
  }

  write(text: string): void {
    this.child.stdin?.write(text);
  }

  endInput(): void {
    this.child.stdin?.end();
  }

  /** The exit code, or the signal that ended the process. */
  async end(): Promise<unknown> {
    const [code, signal] = await this.#exit;
    return code ?? signal;
  }
}

/** The command line in a separate process. */
export function startCli(dir: string, ...args: readonly string[]): Started {
  return new Started([skeinProgram, ...args], { SKEIN_DIR: dir });
}
