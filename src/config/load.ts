import { dirname, join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { SkeinError } from "../core/errors.ts";
import { checkNames } from "./check-names.ts";
import type { Variable } from "./environment.ts";
import { environmentLayer } from "./environment.ts";
import { findConfigFile, readTextFile } from "./find-file.ts";
import type { ParsedFile } from "./parse-yaml.ts";
import { parseConfigObject, parseConfigText } from "./parse-yaml.ts";
import type { ConfigProblem } from "./problems.ts";
import { compareProblems, configError } from "./problems.ts";
import { readTree } from "./read-tree.ts";
import type { LoadOptions } from "./root.ts";
import { homeOf, rootOf, storeInRoot } from "./root.ts";
import type { Config } from "./sections/all.ts";
import { sections } from "./sections/all.ts";
import type { Place } from "./settings/setting.ts";
import type { Origin, Source } from "./tree.ts";
import type { Environment } from "./variables.ts";

export interface LoadedConfig {
  readonly config: Config;
  /** `null` if there is no configuration file and the defaults apply. */
  readonly file: string | null;
  /** The absolute path of the root folder. */
  readonly root: string;
  /** The source of each setting's value, by path (`session.maintenance.mode`). */
  readonly sources: ReadonlyMap<string, Source>;
  /**
   * Looks up a variable in the environment or in the `.env` next to the file. This is a function so that logging the
   * object does not print all variables.
   */
  readonly variable: Environment;
  /**
   * The paths of MCP servers and ACP agents whose new command has not been accepted by an operator yet. Absent if there
   * are none.
   */
  readonly waiting?: readonly string[];
}

/** Reads the configuration. Throws `invalid_config` if it has problems. */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const { loaded, problems } = await checkConfig(options);
  const [first, ...others] = problems;
  if (first !== undefined) throw configError([first, ...others]);
  return loaded;
}

/** Like `loadConfig`, but returns the problems instead of throwing. Invalid values are replaced by their defaults. */
export async function checkConfig(
  given: LoadOptions,
): Promise<{ readonly loaded: LoadedConfig; readonly problems: readonly ConfigProblem[] }> {
  const options = { ...given, cwd: resolve(given.cwd) };
  const found = await findFile(options);
  const variables = await variablesOf(options, found?.path ?? null);
  const variable: Environment = (name) => variables.get(name)?.value;
  const root = rootOf(options, variables);
  const parsed = parseWritten(options.values, found, variable);
  const environment = environmentLayer([...variables.values()], sections, parsed.root);
  const placeOf = (origin: Origin): Place => ({
    folder: origin.from === "code" || origin.file === null ? options.cwd : dirname(origin.file),
    home: homeOf(options),
    root: root.path,
  });
  const layers = [...(parsed.root === null ? [] : [parsed.root]), environment.root];
  const here = placeOf({ from: "environment", variable: "", file: null });
  const read = readTree(sections, layers, placeOf, here);
  const { config, sources } = storeInRoot(read.value as Config, read.sources, root);
  const unknown = checkNames(config, sources, options.inCode);
  return {
    loaded: { config, file: found?.path ?? null, root: root.path, sources, variable },
    problems: [...parsed.problems, ...read.problems, ...environment.problems, ...unknown].toSorted(
      compareProblems,
    ),
  };
}

function parseWritten(
  values: object | undefined,
  found: { readonly path: string; readonly text: string } | null,
  variable: Environment,
): ParsedFile {
  if (values !== undefined) return parseConfigObject(values, variable);
  return found === null ? { root: null, problems: [] } : parseConfigText(found.text, found.path, variable);
}

/** Returns the configuration with every setting at its default. */
export function defaultConfig(root: string): Config {
  const place = { folder: root, home: root, root };
  return readTree(sections, [], () => place, place).value as Config;
}

async function findFile(options: LoadOptions): Promise<{ path: string; text: string } | null> {
  const { cwd, file, values } = options;
  if (values !== undefined) return null;
  if (file === undefined) {
    const path = findConfigFile(cwd, rootOf(options, new Map()).path);
    const text = path === null ? null : await readTextFile(path);
    return path === null || text === null ? null : { path, text };
  }
  const path = resolve(cwd, file);
  const text = await readTextFile(path);
  if (text !== null) return { path, text };
  const advice = "Check the path; relative paths are resolved against the working directory";
  throw new SkeinError("not_found", { what: "Configuration file", name: path, advice });
}

/** Variables in the real environment take precedence over those in the `.env` next to the file. */
async function variablesOf(
  options: LoadOptions,
  file: string | null,
): Promise<ReadonlyMap<string, Variable>> {
  const envFile = file === null ? null : join(dirname(file), ".env");
  const text = envFile === null ? null : await readTextFile(envFile);
  const variables = new Map<string, Variable>();
  const add = (values: LoadOptions["env"], from: string | null) => {
    for (const [name, value] of Object.entries(values)) {
      if (value !== undefined) variables.set(name, { name, value, file: from });
    }
  };
  add(parseEnv(text ?? ""), envFile);
  add(options.env, null);
  return variables;
}
