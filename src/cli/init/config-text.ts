import { keyedProviders, rehearsalModel } from "../../config/default-model.ts";
import type { FoundKey } from "./find-keys.ts";
import type { FoundOllama } from "./find-ollama.ts";

/** What a first configuration is made from. */
export interface Found {
  readonly keys: readonly FoundKey[];
  readonly ollama: FoundOllama | null;
}

/** The model for what was found: of the first key, else one of Ollama's that can talk, else the rehearsal model. */
export function chosenModel({ keys, ollama }: Found): string {
  const [key] = keys;
  const known = keyedProviders.find(({ provider }) => provider === key?.provider);
  if (known !== undefined) return `${known.provider}/${known.model}`;
  const local = ollama?.models.find((name) => !/embed|bge-|minilm/i.test(name));
  return local === undefined ? rehearsalModel : `local/${local}`;
}

/** A first `skein.yaml`, with comments: what was found, and what else there is, as comments that hold when uncommented. */
export function configText(found: Found): string {
  return [
    "# Configuration of Skein. Everything has a default; docs/configuration.md lists every setting.",
    "# `skein doctor` tells mistakes in here with their lines, and shows what holds.",
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
    "    # Keys stay in the environment, or in the .env beside this file; only their names stand here.",
    "    # A variable that is named here has to be set wherever this file is read.",
    ...keyedProviders.flatMap((known) => {
      const key = found.keys.find(({ provider }) => provider === known.provider);
      const line = `${known.provider}: { apiKey: "\${${key?.variable ?? known.variables[0]}}" }`;
      return [`    ${key === undefined ? "# " : ""}${line}`];
    }),
    ...localLines(found.ollama),
    "",
    "# defaults: { runTimeoutSeconds: 3600, maxSteps: 50 } # for every agent; the same keys as an agent",
    "# budget: { hops: 8, runs: 100, costUsd: 5 } # what one request and all that it sets off may come to",
    '# mcpServers: { files: { command: npx, args: ["-y", "some-mcp-server"] } } # tools of other programs',
    "# acp: { agents: { claude: {}, gemini: {} }, defaultAgent: claude } # agents of others to spawn, see docs/acp.md",
    "# store: files:~/.skein # where sessions are kept",
    "# gateway: { host: 127.0.0.1, port: 18790 } # where `skein start` listens",
    "",
  ].join("\n");
}

/** Nobody should have to take the rehearsal model out again when there is a key. */
function modelLines(model: string): string[] {
  if (model !== rehearsalModel) return [`    model: ${JSON.stringify(model)}`];
  return [
    `    # No model is named: ${rehearsalModel}, which needs no key, answers until one is there.`,
    `    # model: "anthropic/${keyedProviders[0]?.model}"`,
  ];
}

function localLines(ollama: FoundOllama | null): string[] {
  const lines = ["local:", "  type: openai-compatible"];
  if (ollama === null) {
    return [
      "# A server that speaks as OpenAI does, such as Ollama:",
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
