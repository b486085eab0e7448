import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Terminal } from "../../src/cli/main.ts";
import { runCli } from "../../src/cli/main.ts";

export const family = fileURLToPath(new URL("../../examples/family/", import.meta.url));

export interface Printed {
  readonly out: string;
  readonly err: string;
  readonly exit: number;
}

/** A terminal without colors or a user. It prints nothing. */
export function silentTerminal(cwd: string): Terminal {
  return {
    out: () => undefined,
    err: () => undefined,
    color: { out: false, err: false },
    columns: 100,
    cwd,
    command: "skein",
    env: {},
    home: "/nobody",
    now: () => Date.now(),
    ask: null,
    redraws: false,
    isWatched: false,
    input: () => ({ stream: Readable.from([]), typed: false }),
    onInterrupt: () => () => undefined,
  };
}

/** Runs a command line in this process, on a terminal without colors or a user, in the sample family's folder. */
export async function run(args: readonly string[], surroundings: Partial<Terminal> = {}): Promise<Printed> {
  const printed = { out: "", err: "" };
  const exit = await runCli(args, "1.2.3", {
    ...silentTerminal(family),
    out: (text) => {
      printed.out += text;
    },
    err: (text) => {
      printed.err += text;
    },
    ...surroundings,
  });
  return { ...printed, exit };
}

/** Returns a printed context without its token estimate. */
export function withoutFigures(out: string): string {
  return out.replace(/^tokens .*\n( {10}.*\n)*/m, "tokens    (estimated)\n");
}
