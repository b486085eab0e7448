import { join } from "node:path";
import { parseEnv } from "node:util";
import { keyedProviders, keyVariable, rehearsalModel } from "../config/default-model.ts";
import { readTextFile } from "../config/find-file.ts";
import { gatherStream } from "../core/gather-bytes.ts";
import { isRecord } from "../core/is-record.ts";

export interface Found {
  readonly keys: readonly FoundKey[];
  readonly ollama: FoundOllama | null;
}

/** Returns the model for the first key found, otherwise an Ollama chat model, and otherwise the rehearsal model. */
export function chosenModel({ keys, ollama }: Found): string {
  const [key] = keys;
  const known = keyedProviders.find(({ provider }) => provider === key?.provider);
  if (known !== undefined) return `${known.provider}/${known.model}`;
  const local = ollama?.models.find((name) => !/embed|bge-|minilm/i.test(name));
  return local === undefined ? rehearsalModel : `local/${local}`;
}

/**
 * Returns an initial `skein.yaml`. Settings for providers that were not found are comments that are valid when
 * uncommented.
 */
export function configText(found: Found): string {
  return [
    "# Skein configuration. Every setting has a default; docs/configuration.md lists them all.",
    "# `skein doctor` reports errors in this file with line numbers, and shows the effective settings.",
    "",
    "agents:",
    "  main:",
    ...modelLines(chosenModel(found)),
    '    # system: "You are a careful librarian."',
    "    # thinking: low # off, minimal, low, medium, high or xhigh",
    '    # tools: { allow: ["*"], deny: [] } # names, groups and globs',
    "",
    "models:",
    "  providers:",
    "    # API keys stay in the environment or in the .env file next to this file; only variable names belong here.",
    "    # Every variable used here must be set wherever this file is read.",
    ...keyedProviders.flatMap((known) => {
      const key = found.keys.find(({ provider }) => provider === known.provider);
      const line = `${known.provider}: { apiKey: "\${${key?.variable ?? known.variables[0]}}" }`;
      return [`    ${key === undefined ? "# " : ""}${line}`];
    }),
    ...localLines(found.ollama),
    "",
    "# defaults: { runTimeoutSeconds: 3600, maxSteps: 50 } # for all agents; same keys as an agent",
    "# budget: { hops: 8, runs: 100, costUsd: 5 } # limits for one request and everything that it starts",
    '# mcpServers: { files: { command: npx, args: ["-y", "some-mcp-server"] } } # tools from other programs',
    "# acp: { agents: { claude: {}, gemini: {} }, defaultAgent: claude } # external agents to spawn, see docs/acp.md",
    "# store: files:~/.skein # where sessions are stored",
    "# gateway: { host: 127.0.0.1, port: 18790 } # where `skein start` listens",
    "",
  ].join("\n");
}

/** The rehearsal model is not written to the file so that a key added later takes effect. */
function modelLines(model: string): string[] {
  if (model !== rehearsalModel) return [`    model: ${JSON.stringify(model)}`];
  return [
    `    # No model is set. ${rehearsalModel}, which needs no API key, is used until a key is available.`,
    `    # model: "anthropic/${keyedProviders[0]?.model}"`,
  ];
}

function localLines(ollama: FoundOllama | null): string[] {
  const lines = ["local:", "  type: openai-compatible"];
  if (ollama === null) {
    return [
      "# An OpenAI-compatible server, such as Ollama:",
      ...lines,
      '  baseUrl: "http://127.0.0.1:11434/v1"',
    ].map((line, index) => `    ${index === 0 ? "" : "# "}${line}`);
  }
  const models = ollama.models.map((name) => `    ${JSON.stringify(name)}: {}`);
  return [
    ...lines,
    `  baseUrl: ${JSON.stringify(ollama.baseUrl)}`,
    models.length > 0 ? "  models:" : "",
    ...models,
  ]
    .filter((line) => line !== "")
    .map((line) => `    ${line}`);
}

/** The environment variable that holds an API key. The value is not stored. */
interface FoundKey {
  readonly provider: string;
  readonly variable: string;
  readonly from: "environment" | ".env";
}

/** Finds API keys in the environment and in a folder's `.env`, in order of preference. */
export async function findKeys(
  folder: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<readonly FoundKey[]> {
  const fromFile = parseEnv((await readTextFile(join(folder, ".env"))) ?? "");
  return keyedProviders.flatMap((known) => {
    // An environment variable takes precedence even if it is blank, as when the configuration is read.
    const variable = keyVariable(known, (name) => env[name] ?? fromFile[name]);
    if (variable === null) return [];
    return [
      { provider: known.provider, variable, from: env[variable] === undefined ? ".env" : "environment" },
    ];
  });
}

interface FoundOllama {
  /** The OpenAI-compatible address. */
  readonly baseUrl: string;
  readonly models: readonly string[];
}

const usualPort = "11434";
/** Most machines have no Ollama server. A server whose address is given probably exists, but might respond slowly. */
const timeoutMs = { usual: 500, given: 10_000 };
const mostBytes = 1_000_000;
const mostModels = 100;

/** Fetches the list of models from the Ollama server at `host`, or returns `null` if it does not respond in time. */
export async function findOllama(host: string | undefined): Promise<FoundOllama | null> {
  const base = ollamaBase(host);
  if (base === null) return null;
  const isGiven = host !== undefined && host.trim() !== "";
  const text = await fetchText(`${base}/api/tags`, isGiven ? timeoutMs.given : timeoutMs.usual);
  const models = text === null ? null : modelNames(text);
  return models === null ? null : { baseUrl: `${base}/v1`, models };
}

/** Parses OLLAMA_HOST, which can be a URL, a host, a port or empty. Returns `null` if it is invalid. */
export function ollamaBase(host: string | undefined): string | null {
  const given = (host ?? "").trim();
  const hasScheme = /^https?:\/\//i.test(given);
  const url = URL.parse(hasScheme ? given : `http://${/^(:\d|$)/.test(given) ? "127.0.0.1" : ""}${given}`);
  if (url === null || url.username !== "" || url.password !== "") return null;
  // A server can listen on 0.0.0.0, but clients cannot connect to that address.
  if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1";
  if (!hasScheme && !/:\d+(?:\/|$)/.test(given)) url.port = usualPort;
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/**
 * Returns the model names in a response from `/api/tags`, or `null` if its format is unexpected. Unsafe names are
 * omitted.
 */
function modelNames(text: string): readonly string[] | null {
  const answer = parsed(text);
  const models = isRecord(answer) ? answer.models : null;
  if (!Array.isArray(models)) return null;
  const names = models.flatMap((model: unknown) => {
    const name = isRecord(model) ? model.name : null;
    return typeof name === "string" && /^[A-Za-z0-9][\w.:/@-]{0,199}$/.test(name) ? [name] : [];
  });
  return [...new Set(names)].slice(0, mostModels);
}

/** Returns the body of a successful response, or `null` if it is too large or does not arrive in time. */
async function fetchText(url: string, waitMs: number): Promise<string | null> {
  try {
    const response = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(waitMs) });
    const bytes = await gatherStream(response.body, mostBytes);
    return response.ok && bytes !== null ? bytes.toString("utf8") : null;
  } catch {
    // Any failure means that Ollama cannot be used.
    return null;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
