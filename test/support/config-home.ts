import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach } from "vitest";
import type { LoadedConfig } from "../../src/config/load.ts";
import { checkConfig, loadConfig } from "../../src/config/load.ts";
import { problemText } from "../../src/config/problems.ts";
import type { Config } from "../../src/config/sections/all.ts";

export interface ConfigHome {
  readonly home: string;
  /** Writes files under the home folder and returns the path of the first. */
  write(files: Record<string, string>): string;
  load(
    env?: Record<string, string>,
    options?: { cwd?: string; root?: string; file?: string },
  ): Promise<LoadedConfig>;
  /** Returns the problems of a configuration file, without its path. */
  mistakes(text: string, env?: Record<string, string>): Promise<string[]>;
}

/** Returns the configured folders of all agents. */
export function foldersOf({ agents }: Config): Record<string, { readonly cwd: string | null }> {
  return Object.fromEntries(Object.entries(agents).map(([id, { cwd }]) => [id, { cwd }]));
}

/** Gives each test of a file its own home folder for configuration files. */
export function useConfigHome(): ConfigHome {
  let [base, home, count] = ["", "", 0];
  beforeAll(() => {
    base = mkdtempSync(join(tmpdir(), "cfg-"));
  });
  beforeEach(() => {
    home = join(base, String(++count));
    mkdirSync(home);
  });
  afterAll(() => rmSync(base, { recursive: true, force: true }));
  const write: ConfigHome["write"] = (files) => {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(home, name)), { recursive: true });
      writeFileSync(join(home, name), text);
    }
    return join(home, Object.keys(files)[0] ?? "");
  };
  return {
    get home() {
      return home;
    },
    write,
    load: (env = {}, options = {}) => loadConfig({ cwd: home, ...options, env: { HOME: home, ...env } }),
    mistakes: async (text, env = {}) => {
      const file = write({ "skein.yaml": text });
      const { problems } = await checkConfig({ cwd: home, env: { HOME: home, ...env } });
      return problems.map((problem) => problemText(problem).replace(`${file}:`, ""));
    },
  };
}
