import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { SkeinError } from "../core/errors.ts";
import type { Variable } from "./environment.ts";
import { rootVariable } from "./environment.ts";
import type { Config } from "./sections/all.ts";
import { resolvePath } from "./settings/kinds.ts";
import type { Source } from "./tree.ts";

/** The names that a program defines in its code. Settings can refer to them. */
export interface NamesInCode {
  readonly agents: readonly string[];
  readonly channels: readonly string[];
}

export interface LoadOptions {
  /** The folder where the search for a configuration file starts, and the base for relative paths. */
  readonly cwd: string;
  /** The root folder passed with `--dir`. */
  readonly root?: string;
  /** The configuration file passed with `--config`. It must exist. */
  readonly file?: string;
  /** The configuration itself, instead of a file. */
  readonly values?: object;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly inCode?: NamesInCode;
}

/** The folder for the store and all other files, unless `store` names a different one. */
export interface Root {
  readonly path: string;
  readonly source: Source;
}

/**
 * Returns `--dir` if set, otherwise SKEIN_DIR, and otherwise `~/.skein`. Once the file has been found, `variables`
 * includes the variables from `.env`.
 */
export function rootOf(options: LoadOptions, variables: ReadonlyMap<string, Variable> = new Map()): Root {
  if (options.root !== undefined) {
    const source = { from: "option", option: "--dir" } as const;
    return { path: absolute(options.root, options.cwd, options), source };
  }
  const real = { value: options.env[rootVariable] ?? "", file: null };
  const { value, file } = variables.get(rootVariable) ?? real;
  if (value === "") return { path: join(homeOf(options), ".skein"), source: { from: "default" } };
  const source: Source = { from: "environment", variable: rootVariable, file, secret: false };
  return { path: absolute(value, file === null ? options.cwd : dirname(file), options), source };
}

/**
 * An explicit root folder overrides a folder in `store`. SKEIN_STORE overrides SKEIN_DIR, but not `--dir`. With a
 * database, the root folder contains only this machine's own files.
 */
export function storeInRoot(config: Config, sources: ReadonlyMap<string, Source>, root: Root) {
  const isOwn = root.source.from === "environment" && sources.get("store")?.from === "environment";
  if (root.source.from === "default" || isOwn) return { config, sources };
  const isDatabase = config.store.kind === "postgres";
  const store = Object.freeze(isDatabase ? { ...config.store, path: root.path } : filesIn(root));
  return {
    config: Object.freeze({ ...config, store }),
    sources: isDatabase ? sources : new Map([...sources, ["store", root.source]]),
  };
}

function filesIn({ path }: Root): Config["store"] {
  return { kind: "files", path };
}

export function homeOf({ env }: Pick<LoadOptions, "env">): string {
  return env.HOME || env.USERPROFILE || homedir();
}

function absolute(path: string, folder: string, options: LoadOptions): string {
  const resolved = resolvePath(path, { folder, home: homeOf(options) });
  if (resolved !== null) return resolved;
  const advice = "Use a full path; only ~/ is expanded";
  throw new SkeinError("invalid_arguments", {
    problem: `The root folder "${path}" is not a valid path`,
    advice,
  });
}
