import { PassThrough } from "node:stream";
import { runCli } from "../../src/cli/main.ts";
import { silentTerminal } from "./cli.ts";
import { CommandOutput } from "./cli-process.ts";

/** A command in this process, with the interface of `Started`. It costs a tenth of a separate process. */
export class StartedInside extends CommandOutput {
  readonly #input = new PassThrough();
  readonly #ended: Promise<number>;
  #requestStop: (why: string) => void = () => undefined;

  constructor(args: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}) {
    super();
    this.#ended = runCli(args, "0.0.0", {
      ...silentTerminal(cwd),
      env: { PATH: process.env.PATH, HOME: cwd, ...env },
      home: env.HOME ?? cwd,
      input: () => ({ stream: this.#input, typed: false }),
      out: (text) => this.print("out", text),
      err: (text) => this.print("err", text),
      signals: {
        onStop: (stop) => {
          this.#requestStop = stop;
          return () => undefined;
        },
        onReload: () => () => undefined,
        exit: () => undefined,
      },
    });
    this.closed = this.#ended;
  }

  /** Its exit code. */
  end(): Promise<number> {
    this.#input.end();
    return this.#ended;
  }

  /** Stops a gateway as SIGTERM does. Resolves to its exit code. */
  stop(): Promise<number> {
    this.#requestStop("the test");
    return this.#ended;
  }
}
