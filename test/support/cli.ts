import { fileURLToPath } from "node:url";
import { runCli } from "../../src/cli/main.ts";
import type { Terminal } from "../../src/cli/output/terminal.ts";

export const family = fileURLToPath(new URL("../../examples/family/", import.meta.url));

export interface Printed {
  readonly out: string;
  readonly err: string;
  readonly exit: number;
}

/** Runs a command line in this process, on a terminal without colours or a user, in the folder of the sample family. */
export async function run(args: readonly string[], surroundings: Partial<Terminal> = {}): Promise<Printed> {
  const printed = { out: "", err: "" };
  const exit = await runCli(args, "1.2.3", {
    out: (text) => {
      printed.out += text;
    },
    err: (text) => {
      printed.err += text;
    },
    color: { out: false, err: false },
    columns: 100,
    cwd: family,
    command: "skein",
    env: {},
    home: "/nobody",
    now: () => Date.now(),
    ask: null,
    redraws: false,
    ...surroundings,
  });
  return { ...printed, exit };
}
