import type { LoadedConfig } from "../../config/load.ts";
import type { LoadOptions } from "../../config/root.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";

/** The configuration for a call: `--dir` and `--config` go before what is found. */
export async function loadSettings(terminal: Terminal, options: GlobalOptions): Promise<LoadedConfig> {
  const { loadConfig } = await import("../../config/load.ts");
  return loadConfig(loadOptions(terminal, options));
}

export function loadOptions({ cwd, env, home }: Terminal, { dir, config }: GlobalOptions): LoadOptions {
  return {
    cwd,
    env: { HOME: home, ...env },
    ...(dir === undefined ? {} : { root: dir }),
    ...(config === undefined ? {} : { file: config }),
  };
}
